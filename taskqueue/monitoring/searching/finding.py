"""A page of the tasks that match a filter, found by keys: the whole table is never read.

What no index has is searched in windows, one after another, until the page is full or
enough has been read; then the page says how far it has looked.
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
from taskqueue.monitoring.searching.orders import (
    NEWER,
    OLDER,
    Direction,
    Order,
    Place,
    beside,
    cursor_of,
    place_at,
    time_of,
)
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
    # Windows of a page: each costs two queries.
    windows: int = 4
    # Time after which no other window is begun.
    seconds: float = 0.1


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of tasks, with cursors to its neighbours."""

    tasks: Sequence[Task]
    # The cursor of the newer page; empty: none is known.
    newer: str = ""
    older: str = ""
    # Whether it has fewer tasks than possible, because the limits were reached.
    is_cut_short: bool = False
    # Tasks that hold the unique keys of the search, where it was cut short before them.
    holders: Sequence[Task] = ()
    # About how far a page that is cut short has searched.
    searched_to: datetime | None = None

    @property
    def is_all(self) -> bool:
        """Whether no other task matches."""
        return not self.newer and not self.older


@dataclass
class _Work:
    """What has been read so far, and what may still be read."""

    effort: Effort
    # Streams that have not been begun.
    streams: int
    begun: float = field(default_factory=time.monotonic)
    rows: int = 0
    # Windows so far, with other work of as many queries.
    windows: int = 0

    def sizes(self) -> Iterator[int]:
        """Yield the number of rows of each window of the next stream: one at least.

        Windows that a stream leaves are shared by those after it.
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
        """Return the rows that the remaining time allows; 0: none."""
        effort, took = self.effort, time.monotonic() - self.begun
        left = effort.most - self.rows
        if left <= 0 or took >= effort.seconds:
            return 0
        by_rate = int(self.rows * (effort.seconds - took) / took) if took else effort.largest
        largest = min(left, effort.largest, size * effort.growth)
        return min(largest, max(effort.first // 5, by_rate, 1))


@dataclass(frozen=True)
class _Found:
    tasks: list[Task]
    # How far the stream was read; None: to its end.
    end: Place | None
    is_full: bool = False


def find(
    which: TaskFilter,
    *,
    tasks: QuerySet[Task] | None = None,
    before: str = "",
    after: str = "",
    limit: int = PAGE,
    effort: Effort | None = None,
) -> Page:
    """Return the page older than the cursor `before` or newer than `after`; or the first.

    Newest first: by id, or by their end where all matching tasks have ended. An invalid cursor, or
    one of another order, gives the first page.
    """
    rows = Task.objects.using(database_alias()) if tasks is None else tasks
    how = plan(which, rows)
    older, newer = place_at(how.order, before), place_at(how.order, after)
    direction, place = (NEWER, newer) if newer is not None else (OLDER, older)
    work = _Work(effort or Effort(), len(how.streams), windows=how.looked_up + bool(_keys(which)))
    fitting = which.among(rows)
    readings = [
        _read(stream, how, rows, fitting, place, direction, limit + 1, work)
        for stream in how.streams
    ]
    page = _page(readings, how.order, place, direction, limit)
    if direction is NEWER and len(page.tasks) < limit and not page.newer and how.is_exact:
        return find(which, tasks=tasks, limit=limit, effort=effort)  # The first page, and full.
    return page if place is not None else _with_holders(page, which, rows)


def _read(
    stream: Stream,
    how: Plan,
    rows: QuerySet[Task],
    fitting: QuerySet[Task],
    place: Place | None,
    direction: Direction,
    wanted: int,
    work: _Work,
) -> _Found:
    order = how.order
    fitting = fitting.filter(stream.condition)
    if stream.is_short or how.is_exact:
        beyond = fitting.filter(order.beyond(place, direction))
        return _full_or_all(list(order.sorted(beyond, direction)[:wanted]), order, wanted)
    tasks: list[Task] = []
    within = rows.filter(stream.condition)
    for size in work.sizes():
        edge = _edge(order, within, place, direction, size)
        window = order.beyond(place, direction) & order.up_to(edge, direction)
        tasks += order.sorted(fitting.filter(window), direction)[: wanted - len(tasks)]
        if edge is None or len(tasks) == wanted:
            return _full_or_all(tasks, order, wanted)
        place = edge
    return _Found(tasks, place)


def _full_or_all(tasks: list[Task], order: Order, wanted: int) -> _Found:
    is_full = len(tasks) >= wanted
    return _Found(tasks, order.of(tasks[-1]) if is_full else None, is_full)


def _edge(
    order: Order, rows: QuerySet[Task], place: Place | None, direction: Direction, size: int
) -> Place | None:
    """Return the place `size` rows further on; None where fewer are left."""
    beyond = rows.filter(order.beyond(place, direction))
    keys: Any = order.sorted(beyond, direction).values_list(*order.columns)
    return next(iter(keys[size - 1 : size]), None)


def _page(
    readings: Sequence[_Found],
    order: Order,
    place: Place | None,
    direction: Direction,
    limit: int,
) -> Page:
    """Merge the streams, as far as all of them have been read."""
    is_older = direction is OLDER
    tasks = [task for reading in readings for task in reading.tasks]
    tasks.sort(key=order.of, reverse=is_older)
    ends = [reading.end for reading in readings if reading.end is not None]
    horizon = (max if is_older else min)(ends) if ends else None
    if horizon is not None:
        tasks = [t for t in tasks if (order.of(t) >= horizon) is is_older or order.of(t) == horizon]
    is_cut = horizon is not None and len(tasks) <= limit
    shown = tasks[:limit]
    ahead = ""
    if is_cut and horizon is not None:
        ahead = cursor_of(order, horizon)
    elif len(tasks) > limit:
        ahead = cursor_of(order, order.of(shown[-1]))
    behind = ""
    if place is not None:
        behind = cursor_of(order, order.of(shown[0]) if shown else beside(place, direction))
    searched_to = time_of(horizon) if is_cut and horizon is not None else None
    return Page(
        tasks=shown if is_older else shown[::-1],
        newer=behind if is_older else ahead,
        older=ahead if is_older else behind,
        is_cut_short=is_cut,
        searched_to=searched_to,
    )


def _keys(which: TaskFilter) -> Any:
    """Return the unique keys in the filter: words may be keys."""
    return which.given.get("unique_key", which.given.get("words", ()))


def _with_holders(page: Page, which: TaskFilter, rows: QuerySet[Task]) -> Page:
    """Add the holders of keys, which an index finds however old they are."""
    keys = _keys(which)
    if not page.is_cut_short or not keys:
        return page
    held = Q(unique_key__in=[keys] if isinstance(keys, str) else list(keys), holds_unique_key=True)
    known = [task.pk for task in page.tasks]
    return replace(page, holders=list(which.among(rows).filter(held).exclude(pk__in=known)[:PAGE]))
