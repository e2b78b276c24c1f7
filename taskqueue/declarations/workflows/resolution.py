"""Resolve references: from a graph and results to arguments, calls of maps, and results.

These are pure functions. They are given a function `read`, which returns the whole result, error or
argument that a target names; `KnownValues` is one for values in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from taskqueue.core.workflow_states import Spread
from taskqueue.declarations.payload import encode
from taskqueue.declarations.workflows.calls import with_first
from taskqueue.declarations.workflows.checking import check_call_count
from taskqueue.declarations.workflows.graph import Arguments, CompiledCall, Source
from taskqueue.declarations.workflows.reference_data import MARK, Read, Target, escaped, resolve
from taskqueue.exceptions import InvalidArguments, InvalidWorkflow


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownValues:
    """The values of a workflow so far, to be read by targets; None for a step that did not run."""

    results: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, Any] = field(default_factory=dict)
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    # Of the whole workflow, for callbacks.
    result: Any = None
    error: Any = None

    def __call__(self, target: Target) -> Any:
        """Return the whole that a target names; of several steps the first error."""
        if isinstance(target.argument, str):
            return self.kwargs[target.argument]
        if target.argument is not None:
            return self.args[target.argument]
        if not target.steps:
            return self.error if target.part == "error" else self.result
        source = self.errors if target.part == "error" else self.results
        return next((source[step] for step in target.steps if step in source), None)


def resolved_call(args: str, kwargs: str, read: Read) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call with values for references. Raises `InvalidWorkflow`."""
    return resolve(args, read), resolve(kwargs, read)


def calls_of(call: CompiledCall, source: Source, read: Read, *, limit: int) -> list[Arguments]:
    """Return the arguments of the members of a map over a result, each at most `limit` bytes.

    Raises `InvalidWorkflow` if the result is no list, is too long, or an item does not fit.
    """
    items = resolve(source.items, read)
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise InvalidWorkflow(
            f"{call.name}: a map needs a list of items, and the result that it takes them from is "
            f"{'None' if items is None else f'of type {type(items).__name__}'}."
        )
    before = call.args[1:-1]
    return [
        (with_first(before, text), call.kwargs) for text in _rows(call.name, source, items, limit)
    ]


def _rows(name: str, source: Source, items: Sequence[Any], limit: int) -> Iterable[str]:
    """Yield the arguments of each call as JSON text."""
    size = source.size if source.spread is Spread.CHUNKS else 1
    check_call_count(-(-len(items) // size), name)
    for place in range(0, len(items), size):
        row: list[Any] = [items[place]]
        if source.spread is Spread.CHUNKS:
            row = [list(items[place : place + size])]
        elif source.spread is Spread.STARMAP:
            if not isinstance(row[0], list):
                raise InvalidWorkflow(
                    f"{name}: each item of starmap is a list of arguments, and item {place} is of "
                    f"type {type(row[0]).__name__}."
                )
            row = row[0]
        try:
            text = encode(row, limit=limit, what=f"the arguments of call {place // size}")
        except InvalidArguments as error:
            raise InvalidWorkflow(f"{name}: {error}") from None
        yield encode(escaped(row), limit=2 * limit, what="args") if MARK in text else text


def return_value(last: Sequence[str], read: Read) -> Any:
    """Return the result of a workflow: that of its last step, or of several by their names."""
    values = {name: read(Target(steps=(name,))) for name in last}
    return values[last[0]] if len(last) == 1 else values


def allowed_failures(tolerate: int | float, members: int) -> int:
    """Return how many of this many members may fail without failing the step."""
    # The share as it was written, not the float next to it: 0.29 of 100 are 29.
    return tolerate if isinstance(tolerate, int) else int(tolerate * members + 1e-9)
