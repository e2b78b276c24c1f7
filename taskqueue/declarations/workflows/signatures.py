"""The functions that make canvases of calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from taskqueue.core.refusals import joined, why
from taskqueue.core.workflow_states import Spread
from taskqueue.declarations.arguments import Call, checked_call
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.workflows.calls import (
    BuildsGraph,
    Callee,
    Calls,
    bounded,
    check_call,
    encode,
    require_callee,
    shape_of,
    text_of_known,
)
from taskqueue.declarations.workflows.canvas import Canvas, StepCall, chain_of
from taskqueue.declarations.workflows.checking import check_call_count
from taskqueue.declarations.workflows.graph import NO_KEYWORDS
from taskqueue.declarations.workflows.groups import Group, Map, MapOver, group_of, map_of
from taskqueue.declarations.workflows.references import Reference
from taskqueue.declarations.workflows.signing import FanOut, Items, ResultBefore, Signing
from taskqueue.exceptions import ArgumentsDoNotBind, InvalidArguments, InvalidWorkflow

T = TypeVar("T")


def signature(
    callee: Callee, args: Sequence[Any], kwargs: Mapping[str, Any], *, is_immutable: bool = False
) -> StepCall:
    """Return one call, checked and encoded.

    Raises `ArgumentsDoNotBind`, `InvalidArguments` or `InvalidWorkflow`.
    """
    require_callee(callee)
    shape = shape_of(len(args), tuple(kwargs))
    if (known := text_of_known(callee, args, kwargs)) is not None:
        return StepCall(callee, known, NO_KEYWORDS, shape, is_immutable=is_immutable)
    check_call(callee, args, kwargs, is_immutable=is_immutable)
    texts, references = encode(callee, args, kwargs, is_immutable=is_immutable)
    return StepCall(callee, *texts, shape, tuple(references), is_immutable=is_immutable)


def mapped(callee: Callee, items: Items, spread: Spread, *, size: int = 1) -> Group | Map | MapOver:
    """Return the calls that are made of items. Raises as `signature` does."""
    require_callee(callee)
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InvalidWorkflow(f"The size of a chunk must be a whole number of 1 or more: {size!r}.")
    if isinstance(items, Reference | ResultBefore):
        if not isinstance(callee, BaseDefinition):
            raise InvalidWorkflow(
                f"{callee.name} is a workflow, and a map over a result runs tasks. Return "
                "fan_out([...]) of its signatures from a task."
            )
        known = items if isinstance(items, Reference) else None
        return MapOver(definition=callee, items=known, spread=spread, size=size)
    if spread is Spread.CHUNKS:
        listed = _chunks(items, size, callee.name)
    else:
        listed = bounded(items, callee.name)
    rows = [_arguments_of(item, callee.name) for item in listed] if (
        spread is Spread.STARMAP
    ) else [(item,) for item in listed]  # fmt: skip
    if not isinstance(callee, BaseDefinition):
        return group_of([signature(callee, row, {}) for row in rows])
    return map_of(_calls(callee, rows, of="chunks" if spread is Spread.CHUNKS else "items"))


def _calls(callee: BaseDefinition[Any, Any], rows: Iterable[Sequence[Any]], *, of: str) -> Calls:
    """Return the calls of a map. An error says which item is wrong."""
    calls = Calls(callee)
    for place, row in enumerate(rows):
        try:
            calls.add(row, {})
        except (ArgumentsDoNotBind, InvalidArguments) as error:
            wrong = type(error)(joined((f"{of}[{place}]: ", why(error)), ""))
            wrong.path = error.path
            break
    else:
        return calls
    raise wrong  # Not from within `except`: frames hold the arguments.


def _chunks(items: Iterable[Any], size: int, name: str) -> list[list[Any]]:
    """Return the items in lists of that size. Only the number of lists is bounded."""
    if isinstance(items, str | bytes | Mapping):
        bounded(items, name)  # Raises.
    listed = list(items)
    check_call_count(-(-len(listed) // size), name)
    return [listed[start : start + size] for start in range(0, len(listed), size)]


def _arguments_of(item: Any, name: str) -> Sequence[Any]:
    if isinstance(item, list | tuple):
        return item
    raise InvalidWorkflow(
        f"{name}: each item of starmap is a list or tuple of arguments, not of type "
        f"{type(item).__name__}."
    )


def chain(*calls: Canvas | Iterable[Canvas]) -> Canvas:
    """Return a chain of calls, each of which receives the result of the previous one.

    Raises `InvalidWorkflow`.
    """
    return chain_of(_listed(calls))


def group(
    *calls: Canvas | Iterable[Canvas],
    concurrency: int | None = None,
    tolerate: int | float = 0,
) -> Group:
    """Return a group of parallel calls; its result is the list of their results, in order.

    `concurrency` of them are sent at once. As many as `tolerate` says may fail, or below 1 that
    share of them; in the result they are None. Raises `InvalidWorkflow`.
    """
    return group_of(_listed(calls), concurrency=concurrency, tolerate=tolerate)


def chord(header: Canvas | Iterable[Canvas], callback: Canvas) -> Canvas:
    """Return a group followed by a call that receives the list of its results.

    Raises `InvalidWorkflow`.
    """
    return chain_of([header if isinstance(header, Canvas) else group_of(header), callback])


def _listed(calls: Sequence[Any]) -> Iterable[Any]:
    """Return calls that are passed one by one or as one iterable."""
    is_one = len(calls) == 1 and not isinstance(calls[0], Canvas | Reference)
    if is_one and isinstance(calls[0], Iterable):
        return calls[0]
    return calls


def fan_out(
    what: Signing | BaseDefinition[Any, Any] | Canvas | Iterable[Canvas],
    calls: Iterable[Call] | None = None,
    *,
    concurrency: int | None = None,
    tolerate: int | float = 0,
) -> FanOut:
    """Return calls for a body to return: their results become the result of its step.

    Either a definition, with pairs of positional and keyword arguments as `enqueue_many` takes
    them, or signatures, canvas included. Raises as `signature` and `group` do.
    """
    limits: dict[str, Any] = {"concurrency": concurrency, "tolerate": tolerate}
    callee = what.callee() if isinstance(what, Signing) else what
    if not isinstance(callee, BaseDefinition | BuildsGraph):
        if calls is not None:
            raise InvalidWorkflow(
                "fan_out takes a definition and its calls, or a list of signatures alone."
            )
        signatures: Any = callee
        if isinstance(signatures, Group | Map | MapOver):
            return FanOut(signatures.limited(concurrency=concurrency, tolerate=tolerate or None))
        is_one = isinstance(signatures, Canvas)
        return FanOut(group_of([signatures] if is_one else signatures, **limits))
    require_callee(callee)
    if calls is None:
        raise InvalidWorkflow(f"{callee.name}: fan_out needs the calls, as pairs ((1,), {{}}).")
    pairs = [checked_call(call, what="fan_out") for call in bounded(calls, callee.name)]
    if isinstance(callee, BuildsGraph):
        signed = [
            signature(callee, tuple(args), kwargs, is_immutable=True) for args, kwargs in pairs
        ]
        return FanOut(group_of(signed, **limits))
    made = Calls(callee, is_immutable=True)
    for args, kwargs in pairs:
        made.add(tuple(args), kwargs)
    return FanOut(map_of(made, **limits))
