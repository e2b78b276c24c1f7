"""Lists of tasks in orders other than newest first.

By creation and by end, an index has all tasks in order. For other orders, at most `MOST_SORTED` of
the matching tasks are sorted: the newest, or for waiting tasks those that are due first or last.
The page says so if other tasks match too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from django.db.models import F, QuerySet

from taskqueue.core.states import FINISHED, WAITING, TaskStatus
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.models import Lease, Task
from taskqueue.monitoring.reading import is_postgresql, now
from taskqueue.monitoring.searching.finding import PAGE, Page, find
from taskqueue.monitoring.searching.orders import BY_ID, Order, offset_cursor, offset_of
from taskqueue.monitoring.searching.streams import literal

# The most tasks that are sorted for a page.
MOST_SORTED = 1_000
# The condition of the index by `run_after`, word by word.
IS_DUE_LATER = "taskqueue_task.status IN ('retrying', 'scheduled')"
# With the columns for the orders of pages: a column that is left out is read for each row.
SORTED_BY = ("id", "name", "priority", "run_after", "attempt", "finished_at")


class SortKey(StrEnum):
    """The orders of a list."""

    CREATED = "created"
    # Waiting tasks, by when they are due.
    DUE = "due"
    # Finished tasks, by their end.
    FINISHED = "finished"
    # How long the last attempt ran, or has been running.
    RUN_TIME = "run_time"
    PRIORITY = "priority"
    NAME = "name"


@dataclass(frozen=True, kw_only=True)
class Sorting:
    """A key, and which end of it comes first."""

    key: SortKey
    is_descending: bool = False

    @classmethod
    def of(cls, text: str) -> Sorting:
        """Read `priority` or `-priority`. Raises ValueError."""
        return cls(key=SortKey(text.removeprefix("-")), is_descending=text.startswith("-"))

    def __str__(self) -> str:
        return f"{'-' if self.is_descending else ''}{self.key}"

    @property
    def reversed(self) -> Sorting:
        """Return the same key from its other end."""
        return replace(self, is_descending=not self.is_descending)


# By the name in addresses and parameters.
SORTINGS = tuple(f"{sign}{key}" for key in SortKey for sign in ("", "-"))


def find_sorted(
    which: TaskFilter,
    sorting: Sorting,
    *,
    tasks: QuerySet[Task] | None = None,
    before: str = "",
    after: str = "",
    limit: int = PAGE,
) -> Page:
    """Return a page in that order: after the cursor `before`, or before the cursor `after`.

    By end only finished tasks are found, and by due time only waiting ones, unless the filter asks
    for others.
    """
    rows = Task.objects.using(database_alias()) if tasks is None else tasks
    order: Order | None = None
    match sorting.key:
        case SortKey.CREATED:
            order = BY_ID
        case SortKey.FINISHED:
            which = _of_statuses(which, FINISHED)
        case _:
            return _page_of_sorted(which, sorting, rows, before, after, limit)
    if sorting.is_descending:
        return find(which, tasks=rows, before=before, after=after, limit=limit, order=order)
    page = find(
        which, tasks=rows, before=after, after=before, limit=limit, order=order, from_oldest=True
    )
    return replace(page, tasks=page.tasks[::-1], newer=page.older, older=page.newer)


def _of_statuses(which: TaskFilter, those: frozenset[TaskStatus]) -> TaskFilter:
    asked = those if which.statuses is None else those & frozenset(map(TaskStatus, which.statuses))
    return replace(which, everything=False, statuses=sorted(asked))


def _page_of_sorted(
    which: TaskFilter,
    sorting: Sorting,
    rows: QuerySet[Task],
    before: str,
    after: str,
    limit: int,
) -> Page:
    """Sort some tasks by values that no index has in order, and return a page of them."""
    if sorting.key is SortKey.DUE and which.statuses is None:
        which = _of_statuses(which, WAITING)
    lean = Task.objects.using(rows.db).only(*SORTED_BY)
    found = find(which, tasks=lean, limit=MOST_SORTED)
    candidates, is_all = list(found.tasks), found.is_all
    by_due = sorting.key is SortKey.DUE and frozenset(which.statuses or ()) <= WAITING
    if by_due and not is_all:
        candidates = _due_next(which, lean, sorting)
    ids = _sorted(candidates, sorting)
    start = offset_of(before)
    if start is None:
        end = offset_of(after)
        start = max(0, end - limit) if end is not None else 0
    kept = {task.pk: task for task in rows.filter(pk__in=ids[start : start + limit])}
    return Page(
        tasks=[kept[task_id] for task_id in ids[start : start + limit] if task_id in kept],
        newer=offset_cursor(start) if start else "",
        older=offset_cursor(start + limit) if start + limit < len(ids) else "",
        sorted_among=None if is_all else len(candidates),
    )


def _due_next(which: TaskFilter, lean: QuerySet[Task], sorting: Sorting) -> list[Task]:
    """Return the matching tasks among those that are due first, or last."""
    column = "-run_after" if sorting.is_descending else "run_after"
    waiting = Task.objects.using(lean.db)
    if is_postgresql():
        waiting = waiting.filter(status__in=sorted(WAITING))
    else:
        waiting = waiting.filter(literal(IS_DUE_LATER))
    ids = list(waiting.order_by(column).values_list("id", flat=True)[:MOST_SORTED])
    return list(which.among(lean.filter(pk__in=ids)))


def _sorted(tasks: Sequence[Task], sorting: Sorting) -> list[Any]:
    """Return the ids in order; tasks without a value come last."""
    if sorting.key is SortKey.RUN_TIME:
        values: dict[Any, Any] = _run_times(tasks)
    else:
        column = "run_after" if sorting.key is SortKey.DUE else str(sorting.key)
        values = {task.pk: getattr(task, column) for task in tasks}
    ranked = sorted(
        values, key=lambda task_id: (values[task_id], task_id), reverse=sorting.is_descending
    )
    return [*ranked, *(task.pk for task in tasks if task.pk not in values)]


def _run_times(tasks: Sequence[Task]) -> dict[Any, float]:
    """Return how long the last attempt of each ran or has been running, in seconds."""
    if not tasks:
        return {}
    moment = now()
    rows = Lease.objects.using(database_alias()).filter(
        task_id__in=[task.pk for task in tasks],
        attempt=F("task__attempt"),
    )
    return {
        task_id: ((ended or moment) - begun).total_seconds()
        for task_id, begun, ended in rows.values_list("task_id", "started_at", "finished_at")
        if begun is not None
    }
