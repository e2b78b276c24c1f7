"""Read the results of members in order; a fan-out's replace that of the member."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from django.db import connections

from taskqueue.core.naming import counted
from taskqueue.core.workflow_states import StepKind, StepStatus, WorkflowStatus
from taskqueue.engine.workflows.member_pages import pages_of
from taskqueue.engine.workflows.requests import has_parts
from taskqueue.exceptions import InvalidWorkflow
from taskqueue.models import Step, Workflow

# The most bytes of JSON of a list that is read as a whole.
LARGEST_LIST = 64 * 1024 * 1024
# Members that a lazy sequence reads at a time.
PAGE = 200
# The most steps, and the most members, of one query.
BATCH, ROWS = 500, 10_000

# Returns the result of a child workflow, which runs as a step or as a member of a map.
ReadChild = Callable[[Step, int | None], Any]


class MemberResults:
    """Reads the results of members, and counts their bytes."""

    def __init__(self, alias: str, read_child: ReadChild) -> None:
        self._alias = alias
        self._read_child = read_child
        self._bytes = 0

    def of(self, step: Step, *, start: int = 0, stop: int | None = None) -> list[Any]:
        """Return the results of a step's members from `start` to `stop`, with None for failed ones.

        Raises `InvalidWorkflow` if they are larger than `LARGEST_LIST`.
        """
        return self._of([step], start=start, stop=stop)[step.id]

    def of_each(self, steps: Sequence[Step]) -> dict[int, list[Any]]:
        """Return the results of the members of many steps, by the ids of the steps."""
        return self._of(steps)

    def _of(
        self, steps: Sequence[Step], *, start: int = 0, stop: int | None = None
    ) -> dict[int, list[Any]]:
        """Return the results of the members of many steps, by the ids of the steps."""
        found: dict[int, dict[int, Any]] = {step.id: {} for step in steps}
        # The task of a member that returned a fan-out has no result itself.
        has_none = False
        for first in range(0, len(steps), BATCH):
            ids = [step.id for step in steps[first : first + BATCH]]
            pages = pages_of(
                connections[self._alias],
                ids,
                start=start,
                stop=stop,
                number=ROWS,
                largest=LARGEST_LIST,
            )
            for page in pages:
                self._count(page.size)
                has_none = has_none or page.has_none
                found[page.step_id].update(page.results())
        if has_none:
            self._read_fans(found, start=start, stop=stop)
        for step in steps:
            if has_parts(step.request):
                found[step.id] = self._with_children(step, found[step.id], start, stop)
            elif step.kind == StepKind.MAP and step.status == StepStatus.SUCCEEDED:
                found[step.id] = _with_deleted(step, found[step.id], start, stop)
        return {
            step_id: [values[place] for place in sorted(values)]
            for step_id, values in found.items()
        }

    def _with_children(
        self, step: Step, values: dict[int, Any], start: int, stop: int | None
    ) -> dict[int, Any]:
        """Return the results of a group's members by place; some members are child workflows."""
        children = Workflow.objects.using(self._alias).filter(
            parent_step_id=step.id, status=WorkflowStatus.SUCCEEDED
        )
        own = set(children.values_list("parent_place", flat=True))
        members = step.members or 0
        return {
            place: self._read_child(step, place) if place in own else values.get(place)
            for place in range(start, members if stop is None else min(stop, members))
        }

    def _read_fans(self, found: dict[int, dict[int, Any]], *, start: int, stop: int | None) -> None:
        """Put the results of fan-outs in the places of the members that returned them."""
        ids = sorted(found)
        fans: list[Step] = []
        for first in range(0, len(ids), BATCH):
            rows = Step.objects.using(self._alias).filter(
                parent_step_id__in=ids[first : first + BATCH],
                parent_place__gte=start,
                status=StepStatus.SUCCEEDED,
            )
            if stop is not None:
                rows = rows.filter(parent_place__lt=stop)
            fans += rows
        inner = self._of([fan for fan in fans if fan.kind == StepKind.MAP])
        for fan in fans:
            assert fan.parent_step_id is not None
            assert fan.parent_place is not None
            value = inner[fan.id] if fan.id in inner else self._read_child(fan, None)
            found[fan.parent_step_id][fan.parent_place] = value

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > LARGEST_LIST:
            raise InvalidWorkflow(
                "The results of a step's members are larger than a list may be, "
                f"{LARGEST_LIST:,} bytes of JSON. Give the step that reads them "
                "parts.lazy(), a sequence that is read in pages."
            )


def _with_deleted(
    step: Step, values: dict[int, Any], start: int, stop: int | None
) -> dict[int, Any]:
    """Fill in None for members whose tasks were deleted."""
    members = step.members or 0
    places = range(start, members if stop is None else min(stop, members))
    if len(values) >= len(places):
        return values
    return {place: values.get(place) for place in places}


class LazyResults(Sequence[Any]):
    """The results of a step's members as a sequence that holds one page at a time in memory."""

    def __init__(self, alias: str, step: Step, read_child: ReadChild) -> None:
        self._alias = alias
        self._step = step
        self._read_child = read_child
        self._first = 0
        self._page: list[Any] = []

    def __len__(self) -> int:
        return self._step.members or 0

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    @overload
    def __getitem__(self, key: int) -> Any: ...
    @overload
    def __getitem__(self, key: slice) -> list[Any]: ...
    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            return [self[place] for place in range(*key.indices(len(self)))]
        place = key + len(self) if key < 0 else key
        if not 0 <= place < len(self):
            raise IndexError(f"The step has {counted(len(self), 'member')}, and none at {key}.")
        if not self._first <= place < self._first + len(self._page):
            self._first = place - place % PAGE
            results = MemberResults(self._alias, self._read_child)
            self._page = results.of(self._step, start=self._first, stop=self._first + PAGE)
        return self._page[place - self._first]

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'result')} of step {self._step.name}>"
