"""Conditions as data, which a worker evaluates without the project's code.

{"op": ">", "of": [{"$step": "stats", "path": ["rows"]}, 0]}
{"op": "and", "of": [{"op": "is_null", "of": [{"$step": "stats"}]}, …]}
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.payload import DEEPEST
from taskqueue.declarations.workflows.bounds import LARGEST_COMPARED
from taskqueue.declarations.workflows.reference_data import Read, Target, substitute, value_of
from taskqueue.exceptions import InvalidWorkflow

EQUALITIES: dict[str, Callable[[Any, Any], bool]] = {"==": operator.eq, "!=": operator.ne}
ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
MEMBERSHIP, IS_NULL, IS_TRUE = "in", "is_null", "is_true"
AND, OR, NOT = "and", "or", "not"
# The number of operands that each takes; None: one or more.
OPERANDS: dict[str, int | None] = {
    **dict.fromkeys([*EQUALITIES, *ORDERS, MEMBERSHIP], 2),
    IS_NULL: 1, IS_TRUE: 1, NOT: 1, AND: None, OR: None,
}  # fmt: skip
COMBINING = frozenset({AND, OR, NOT})


def check_condition(condition: Any, depth: int = 0) -> None:
    """Raise `InvalidWorkflow` if the data is no condition."""
    if not isinstance(condition, Mapping) or condition.keys() != {"op", "of"}:
        raise InvalidWorkflow(
            "A condition has an `op` and its operands, such as "
            '{"op": ">", "of": [{"$step": "stats", "path": ["rows"]}, 0]}.'
        )
    name, operands = condition["op"], condition["of"]
    if not isinstance(name, str) or name not in OPERANDS:
        raise InvalidWorkflow(
            f"There is no comparison {name!r}."
            + did_you_mean(name, OPERANDS, otherwise=f"There are {', '.join(OPERANDS)}.")
        )
    count = OPERANDS[name]
    if not isinstance(operands, list) or not operands or len(operands) != (count or len(operands)):
        raise InvalidWorkflow(f"{name!r} takes {count or 'a list of'} operands.")
    if depth >= DEEPEST:
        raise InvalidWorkflow(f"A condition may be nested at most {DEEPEST} levels deep.")
    for operand in operands:
        if name in COMBINING:
            check_condition(operand, depth + 1)
        else:
            list(_targets(operand))
            if is_large(operand):
                raise InvalidWorkflow(
                    f"A value in a condition has more than {LARGEST_COMPARED:,} bytes of JSON. "
                    "Let a step compare it, and read what it returns."
                )


def targets_of(condition: Mapping[str, Any]) -> list[Target]:
    """Return the targets of the references in a condition."""
    return [target for operand in condition["of"] for target in _of_operand(condition, operand)]


def _of_operand(condition: Mapping[str, Any], operand: Any) -> Iterator[Target]:
    yield from targets_of(operand) if condition["op"] in COMBINING else _targets(operand)


def _targets(operand: Any) -> Iterator[Target]:
    found: list[Target] = []
    substitute(operand, found.append)
    yield from found


def evaluate(condition: Mapping[str, Any], read: Read) -> bool:
    """Return whether the condition holds.

    A null is neither smaller nor larger than anything: such a comparison is false. Raises
    `InvalidWorkflow` where values cannot be compared, are too large for it, or do not exist.
    """
    name, operands = condition["op"], condition["of"]
    if name == AND:
        return all(evaluate(each, read) for each in operands)
    if name == OR:
        return any(evaluate(each, read) for each in operands)
    if name == NOT:
        return not evaluate(operands[0], read)
    values = [substitute(each, lambda target: value_of(target, read)) for each in operands]
    if name == IS_NULL:
        return values[0] is None
    if name == IS_TRUE:
        return bool(values[0])
    for operand, value in zip(operands, values, strict=True):
        if is_large(value):
            raise InvalidWorkflow(
                f"{_called(operand)} has more than {LARGEST_COMPARED:,} bytes of JSON: it can be "
                "compared only by its length, and with null."
            )
    return _compare(name, values[0], values[1])


def _compare(name: str, left: Any, right: Any) -> bool:
    if name in EQUALITIES:
        return EQUALITIES[name](left, right)
    if name in ORDERS and (left is None or right is None):
        return False
    try:
        return left in right if name == MEMBERSHIP else ORDERS[name](left, right)
    except TypeError:
        raise InvalidWorkflow(
            f"A condition cannot compare {_type(left)} {name} {_type(right)}."
        ) from None


def _type(value: object) -> str:
    names = {
        str: "text",
        bool: "true or false",
        list: "a list",
        dict: "an object",
        type(None): "null",
    }
    return names.get(type(value), "a number")


def _called(operand: Any) -> str:
    return next((str(target).capitalize() for target in _targets(operand)), "A value")


def is_large(value: Any) -> bool:
    """Return whether the value has more bytes of JSON than a condition may compare."""
    size = 0
    # It is compared in pieces: a value may have megabytes, and the first bytes often suffice.
    for piece in json.JSONEncoder(separators=(",", ":")).iterencode(value):
        size += len(piece)
        if size > LARGEST_COMPARED:
            return True
    return False
