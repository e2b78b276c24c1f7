"""Limits as data, with which a task can be placed without the project's code.

Schedules, batches and workflows enqueue tasks in a worker's parent. Keys that are names of
arguments can be read from the arguments' JSON; keys that need a callable cannot be stored.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from taskqueue.core.refusals import refusal as _
from taskqueue.declarations.arguments import json_values
from taskqueue.declarations.limits import Concurrency, Fair, Limits, Rate
from taskqueue.declarations.limits import Sequence as SequenceLimit
from taskqueue.declarations.placement import Placement, place
from taskqueue.declarations.signature import Signature
from taskqueue.declarations.workflows.reference_data import MARK
from taskqueue.exceptions import InvalidTask

_KINDS = {kind.name: kind for kind in inspect._ParameterKind}


def plan_of(limits: Limits | None, signature: Signature) -> str:
    """Return limits as JSON text, with the parameters that their keys may name; empty for none."""
    if limits is None:
        return ""
    data = {
        "parameters": [_parameter(each) for each in signature.parameters],
        "concurrency": [
            [each.limit, _key(each.key), each.name, each.per] for each in limits.concurrency
        ],
        "rate": [[each.rate, _key(each.key), each.name, each.smooth] for each in limits.rate],
        "cost": _unless_callable(limits.cost),
        "fair": limits.fair and [_key(limits.fair.key), _unless_callable(limits.fair.weight)],
        "sequence": limits.sequence
        and [_key(limits.sequence.key), limits.sequence.name, limits.sequence.on_failure],
        "requires": list(limits.requires),
        "sensitive": sorted(limits.sensitive),
    }
    return json.dumps(data, separators=(",", ":"))


def place_from_plan(
    plan: str, *, name: str, queue_name: str, stored: tuple[str, str]
) -> Placement | None:
    """Return the placement of a call with these arguments as JSON text; None without limits.

    Raises `InvalidTask` where only a callable could tell, or the result of a step is a key.
    """
    limits, signature = _loaded(plan)
    return place(limits, signature, (), {}, name=name, queue_name=queue_name, stored=stored)


class _StoredSignature(Signature):
    """The parameters of a body that is not here."""

    def __init__(self, parameters: Sequence[inspect.Parameter]) -> None:
        def body() -> None: ...

        body.__signature__ = inspect.Signature(list(parameters))  # type: ignore[attr-defined]
        super().__init__(body, takes_context=False)

    def bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        values = super().bound(args, kwargs)
        for name, value in (values or {}).items():
            if MARK in json.dumps(value):
                raise InvalidTask(_(
                    "The argument {name!r} makes the key of a limit, and is not known before "
                    "another step has ended. Give it as a value, or the task without the limit.",
                    name=name,
                ))  # fmt: skip
        return values


@lru_cache(maxsize=256)
def _loaded(plan: str) -> tuple[Limits, Signature]:
    data = json.loads(plan)
    fair, sequence = data["fair"], data["sequence"]
    limits = Limits(
        concurrency=tuple(
            Concurrency(limit, key=_key_from(key), name=name, per=per)
            for limit, key, name, per in data["concurrency"]
        ),
        rate=tuple(
            Rate(rate, key=_key_from(key), name=name, smooth=smooth)
            for rate, key, name, smooth in data["rate"]
        ),
        cost=_cost_from(data["cost"]),
        fair=fair and Fair(_key_from(fair[0]), weight=_cost_from(fair[1])),
        sequence=sequence
        and SequenceLimit(_key_from(sequence[0]), name=sequence[1], on_failure=sequence[2]),
        requires=tuple(data["requires"]),
        sensitive=frozenset(data["sensitive"]),
    )
    parameters = [
        inspect.Parameter(name, _KINDS[kind], default=default[0] if default else inspect._empty)
        for name, kind, default in data["parameters"]
    ]
    return limits, _StoredSignature(parameters)


def _parameter(parameter: inspect.Parameter) -> list[Any]:
    default: list[Any] | None = None
    if parameter.default is not inspect.Parameter.empty:
        default = list(json_values({"": parameter.default}).values()) or [None]
    return [parameter.name, parameter.kind.name, default]


def _key(key: Any) -> Any:
    return {"callable": True} if callable(key) else key


def _key_from(key: Any) -> Any:
    if isinstance(key, dict):
        return _refuse
    return tuple(key) if isinstance(key, list) else key


def _unless_callable(value: Any) -> Any:
    return {"callable": True} if callable(value) else value


def _cost_from(value: Any) -> Any:
    return _refuse if isinstance(value, dict) else value


def _refuse(*args: Any, **kwargs: Any) -> Any:
    """Refuse to call a callable that cannot be stored."""
    raise InvalidTask(_(
        "A key, cost or weight that a callable makes is not known where a schedule, a batch or a "
        "workflow enqueues the task. Name an argument instead."
    ))  # fmt: skip
