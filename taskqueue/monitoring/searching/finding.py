"""A page of the tasks that match a filter, found by keys: the whole table is never read.

Conditions without an index are searched in windows, one after another, until the page is full or
enough has been read; then the page says how far the search got.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.models import Task
from taskqueue.monitoring.searching.orders import Order, Place, Walk, cursor_of, place_at, time_of
from taskqueue.monitoring.searching.streams import Plan, Stream, plan

PAGE = 50


@dataclass(frozen=True, kw_only=True)
class Effort:
    """The limits of reading one page."""

    # Rows of the first window of a stream.
    first: int = 1_000
    # The factor by which the next window may be larger.
    growth: int = 4
    largest: int = 50_000
    # Rows of all windows.
    most: int = 100_000
    # The most windows of a page: each costs two queries.
    windows: int = 4
    # The time after which no further window is begun.
    seconds: float = 0.1


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of tasks, with cursors to its neighbours."""

    tasks: Sequence[Task]
    # The cursor of the newer page; empty if none is known.
    newer: str = ""
    older: str = ""
    # Whether it has fewer tasks than possible because a limit was reached.
    is_cut_short: bool = False
    # Tasks that hold unique keys of the search, if it was cut short before reaching them.
    holders: Sequence[Task] = ()
    # About how far a page that was cut short has searched.
    searched_to: datetime | None = None
    # How many of the matching tasks were sorted, if there may be others.
    sorted_among: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether no other tasks match."""
        return not self.newer and not self.older and self.sorted_among is None


@dataclass
class _Work:
    """The windows and rows that a search has read, and how many it may still read."""

    effort: Effort
    # Streams that have not been begun.
    streams: int
    begun: float = field(default_factory=time.monotonic)
    rows: int = 0
    # Windows so far, counting other work with as many queries.
    windows: int = 0

    def sizes(self) -> Iterator[int]:
        """Yield the number of rows of each window of the next stream: at least one window.

        Windows that a stream does not use are shared by later ones.
        """
        share = max(1, (self.effort.windows - self.windows) // max(1, self.streams))
        self.streams -= 1
        size = self.effort.first
        while share and size:
            share -= 1
            self.windows, self.rows = self.windows + 1, self.rows + size
            yield size
            size = self._next(size)

    def _next(self, size: int) -> int:
        """Return the rows that the remaining time allows; 0 for none."""
        effort, took = self.effort, time.monotonic() - self.begun
        left = effort.most - self.rows
        if left <= 0 or took >= effort.seconds:
            return 0
        by_rate = int(self.rows * (effort.seconds - took) / took) if took else effort.largest
        largest = min(left, effort.largest, size * effort.growth)
        return min(largest, max(effort.first // 5, by_rate, 1))


def find(
    which: TaskFilter,
    *,
    tasks: QuerySet[Task] | None = None,
    before: str = "",
    after: str = "",
    limit: int = PAGE,
    effort: Effort | None = None,
    order: Order | None = None,
    from_oldest: bool = False,
) -> Page:
    """Return the page older than the cursor `before` or newer than `after`, or the first page.

    Newest first: by id, or by end if all matching tasks have ended, unless another order is given.
    An invalid cursor, or one of another order, gives the first page; `from_oldest` gives the page
    of the oldest tasks.
    """
    rows = Task.objects.using(database_alias()) if tasks is None else tasks
    how = plan(which, rows, order)
    older, newer = place_at(how.order, before), place_at(how.order, after)
    place = older if newer is None else newer
    reader = _Reader(
        plan=how,
        walk=Walk(how.order, is_to_newer=newer is not None or (from_oldest and older is None)),
        rows=rows,
        fitting=which.among(rows),
        limit=limit,
        work=_Work(
            effort or Effort(), len(how.streams), windows=how.looked_up + bool(_keys(which))
        ),
    )
    page = reader.page(place)
    is_short = len(page.tasks) < limit and not page.newer and not from_oldest
    if newer is not None and is_short and how.is_exact:
        return find(which, tasks=tasks, limit=limit, effort=effort, order=order)  # First and full.
    return page if place is not None else _with_holders(page, which, rows)


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """Reads a page of matching rows."""

    plan: Plan
    walk: Walk
    rows: QuerySet[Task]
    fitting: QuerySet[Task]
    limit: int
    work: _Work

    def page(self, place: Place | None) -> Page:
        """Merge the streams from a place on, as far as all of them have been read."""
        readings = [self._read(stream, place) for stream in self.plan.streams]
        walk, place_of = self.walk, self.walk.order.of
        tasks = [task for found, _ in readings for task in found]
        tasks.sort(key=place_of, reverse=not walk.is_to_newer)
        ends = [end for _, end in readings if end is not None]
        horizon = (min if walk.is_to_newer else max)(ends) if ends else None
        if horizon is not None:
            tasks = [task for task in tasks if not walk.is_past(place_of(task), horizon)]
        shown, ahead, behind = tasks[: self.limit], None, None
        is_cut = horizon is not None and len(tasks) <= self.limit
        if is_cut:
            ahead = horizon
        elif len(tasks) > self.limit:
            ahead = place_of(shown[-1])
        if place is not None:
            behind = place_of(shown[0]) if shown else walk.beside(place)
        cursors = [cursor_of(walk.order, at) if at is not None else "" for at in (behind, ahead)]
        newer, older = reversed(cursors) if walk.is_to_newer else cursors
        return Page(
            tasks=shown[::-1] if walk.is_to_newer else shown,
            newer=newer,
            older=older,
            is_cut_short=is_cut,
            searched_to=time_of(horizon) if is_cut and horizon is not None else None,
        )

    def _read(self, stream: Stream, place: Place | None) -> tuple[list[Task], Place | None]:
        """Return tasks of a stream, and how far it was read; None for to its end."""
        walk, wanted = self.walk, self.limit + 1
        fitting = self.fitting.filter(stream.condition)
        tasks: list[Task] = []
        if stream.is_short or self.plan.is_exact:
            tasks += walk.sorted(fitting.filter(walk.beyond(place)))[:wanted]
            return tasks, self._full(tasks)
        for size in self.work.sizes():
            rest = self.rows.filter(stream.condition, walk.beyond(place))
            edge = walk.place_after(size, rest)
            window = fitting.filter(walk.beyond(place) & walk.up_to(edge))
            tasks += walk.sorted(window)[: wanted - len(tasks)]
            if edge is None or len(tasks) == wanted:
                return tasks, self._full(tasks)
            place = edge
        return tasks, place

    def _full(self, tasks: list[Task]) -> Place | None:
        """Return the place of the last task if there may be others."""
        return self.walk.order.of(tasks[-1]) if len(tasks) > self.limit else None


def _keys(which: TaskFilter) -> Any:
    """Return the unique keys in the filter; words of a search may be keys."""
    return which.given.get("unique_key", which.given.get("words", ()))


def _with_holders(page: Page, which: TaskFilter, rows: QuerySet[Task]) -> Page:
    """Add the holders of keys, which an index finds however old they are."""
    keys = _keys(which)
    if not page.is_cut_short or not keys:
        return page
    held = Q(unique_key__in=[keys] if isinstance(keys, str) else list(keys), holds_unique_key=True)
    known = [task.pk for task in page.tasks]
    return replace(page, holders=list(which.among(rows).filter(held).exclude(pk__in=known)[:PAGE]))
