"""Groups: parallel calls, whose result is the list of their results, in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from taskqueue.core.workflow_states import After, Spread, StepKind
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.workflows.assembly import (
    Assembly,
    Entry,
    Placed,
    inputs_of,
    result_of,
    shortened,
    text_of,
)
from taskqueue.declarations.workflows.calls import Calls, Shape, bounded, check_step, with_first
from taskqueue.declarations.workflows.canvas import Canvas, StepCall, inner_name, require_canvas
from taskqueue.declarations.workflows.checking import (
    check_canvas_nesting,
    check_concurrency,
    check_tolerate,
)
from taskqueue.declarations.workflows.graph import Arguments, CompiledCall, Source, Step
from taskqueue.declarations.workflows.parts import place_parts
from taskqueue.declarations.workflows.references import Reference
from taskqueue.exceptions import InvalidWorkflow


@dataclass(frozen=True, eq=False, kw_only=True)
class _Many(Canvas):
    """A canvas with members: how many are sent at once, and how many may fail."""

    concurrency: int | None = None
    tolerate: int | float = 0

    def __post_init__(self) -> None:
        check_concurrency(self.concurrency)
        check_tolerate(self.tolerate)

    @property
    def is_list(self) -> bool:
        return True

    def limited(self, *, concurrency: int | None, tolerate: int | float | None) -> Canvas:
        return replace(
            self,
            concurrency=self.concurrency if concurrency is None else concurrency,
            tolerate=self.tolerate if tolerate is None else tolerate,
        )

    def _step(self, name: str, definition: BaseDefinition[Any, Any], **more: Any) -> Step:
        call = CompiledCall(
            name=definition.name, definition=definition, args=more.pop("args", "[]")
        )
        return Step(
            name=name, kind=StepKind.MAP, call=call,
            concurrency=self.concurrency, tolerate=self.tolerate, **more,
        )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Map(_Many):
    """Calls of one definition, whose arguments are known."""

    definition: BaseDefinition[Any, Any]
    calls: tuple[Arguments, ...]
    shapes: frozenset[Shape]
    references: tuple[Reference, ...] = ()

    @property
    def default_name(self) -> str:
        return shortened(self.definition.name.rpartition(".")[2])

    @property
    def kind_name(self) -> str:
        return f"map({self.default_name})"

    def place_steps(self, assembly: Assembly, name: str | None, entry: Entry) -> Placed:
        own, first = name or assembly.free_name(self.default_name), entry.first
        check_step(own, self.definition, self.shapes, first=bool(first))
        calls = self.calls
        if first:
            calls = tuple((with_first(first, args), kwargs) for args, kwargs in calls)
        inputs = inputs_of(first, self.references)
        step = self._step(own, self.definition, calls=calls, inputs=inputs)
        return assembly.add(step, entry, self.references)


@dataclass(frozen=True, eq=False, kw_only=True)
class MapOver(_Many):
    """Calls of one definition, one for each item of a list that is known when it is released."""

    definition: BaseDefinition[Any, Any]
    # None: the result of the step before.
    items: Reference | None
    spread: Spread
    size: int = 1

    @property
    def default_name(self) -> str:
        return shortened(self.definition.name.rpartition(".")[2])

    @property
    def kind_name(self) -> str:
        return f"map({self.default_name})"

    def place_steps(self, assembly: Assembly, name: str | None, entry: Entry) -> Placed:
        own, first = name or assembly.free_name(self.default_name), entry.first
        if self.items is None:
            items, first, references = first, "", []
        else:
            items, references = text_of(self.items.target), [self.items]
        if not items:
            raise InvalidWorkflow(
                f"Step {own!r}: a map without items takes the list that the step before returns, "
                "and there is none. Give it items: .map(ids)."
            )
        # The lengths of starmap's items are known when it is released.
        shapes: list[Shape] = [] if self.spread is Spread.STARMAP else [(1, ())]
        check_step(own, self.definition, shapes, first=bool(first))
        step = self._step(
            own, self.definition, args=with_first(first, "[]"),
            source=Source(items=items, spread=self.spread, size=self.size),
            inputs=inputs_of(first, items),
        )  # fmt: skip
        return assembly.add(step, entry, references)


@dataclass(frozen=True, eq=False, kw_only=True)
class Group(_Many):
    """Canvases side by side. Calls of one definition are one step, others are joined by one.

    With limits, others are the members of one step too.
    """

    parts: tuple[Canvas, ...]

    @property
    def default_name(self) -> str:
        calls = self._calls()
        return calls[0].default_name if calls else "group"

    @property
    def kind_name(self) -> str:
        return f"group({self.parts[0].default_name})" if self.parts else "group"

    def place_steps(self, assembly: Assembly, name: str | None, entry: Entry) -> Placed:
        if calls := self._calls():
            return self._place_map(
                assembly, name or assembly.free_name(self.default_name), entry, calls
            )
        return self._place_join(assembly, name, entry)

    def _calls(self) -> Sequence[StepCall]:
        """Return its parts if they can be the members of one step; else nothing."""
        if set(map(type, self.parts)) != {StepCall}:
            return ()
        calls: Sequence[StepCall] = self.parts  # type: ignore[assignment]
        callee = calls[0].callee
        if not isinstance(callee, BaseDefinition):
            return ()
        is_map = all(call.callee is callee and not call.callbacks for call in calls)
        return calls if is_map else ()

    def _place_map(
        self, assembly: Assembly, name: str, entry: Entry, calls: Sequence[StepCall]
    ) -> Placed:
        definition = calls[0].callee
        assert isinstance(definition, BaseDefinition)
        for is_immutable in {each.is_immutable for each in calls}:
            shapes = {each.shape for each in calls if each.is_immutable is is_immutable}
            check_step(name, definition, shapes, first=bool(entry.first) and not is_immutable)
        references = [reference for each in calls for reference in each.references]
        first = "" if all(each.is_immutable for each in calls) else entry.first
        if first:
            arguments = [(with_first(each.first(entry), each.args), each.kwargs) for each in calls]
        else:
            arguments = [(each.args, each.kwargs) for each in calls]
        inputs = inputs_of(first, references)
        step = self._step(name, definition, inputs=inputs, calls=tuple(arguments))
        return assembly.add(step, entry, references)

    def _place_join(self, assembly: Assembly, name: str | None, entry: Entry) -> Placed:
        if self.concurrency is not None or self.tolerate:
            return place_parts(
                assembly, name or assembly.free_name(self.default_name), entry, self.parts,
                concurrency=self.concurrency, tolerate=self.tolerate,
            )  # fmt: skip
        placed = [
            part.place(assembly, inner_name(assembly, name, part), entry) for part in self.parts
        ]
        lasts = [each.last for each in placed]
        own = name or assembly.free_name(self.default_name)
        value = ",".join(text_of(result_of(last)) for last in lasts)
        after = tuple((last, After.SUCCEEDED) for last in lasts)
        step = Step(name=own, kind=StepKind.JOIN, value=f"[{value}]", inputs=tuple(lasts))
        joined = assembly.add(step, Entry(after=after) if lasts else entry)
        return Placed(own, (*(step for each in placed for step in each.steps), *joined.steps))


def group_of(
    canvases: Iterable[Any], *, concurrency: int | None = None, tolerate: int | float = 0
) -> Group:
    """Return the canvases side by side. Raises `InvalidWorkflow`."""
    parts = tuple(bounded(canvases, "group"))
    # There may be very many: one of each kind is looked at.
    for part in {type(part): part for part in reversed(parts)}.values():
        require_canvas(part)
    levels = 1 + max(map(attrgetter("levels"), parts), default=0)
    check_canvas_nesting(levels)
    return Group(parts=parts, levels=levels, concurrency=concurrency, tolerate=tolerate)


def map_of(calls: Calls, *, concurrency: int | None = None, tolerate: int | float = 0) -> Map:
    """Return a map of calls that are known."""
    return Map(
        definition=calls.callee,
        calls=tuple(calls.arguments),
        shapes=frozenset(calls.shapes),
        references=tuple(calls.references),
        concurrency=concurrency,
        tolerate=tolerate,
    )
