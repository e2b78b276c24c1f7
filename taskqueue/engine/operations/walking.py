"""Which tasks come next: in the order of their ids, a bounded look at a time.

However rare what fits, and however large the table, one statement reads no more than `WINDOW` rows:
so many ids in a row, or all of a status that so few tasks have that an index lists them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q, QuerySet

from taskqueue.core.states import FINISHED, WAITING, LeaseStatus, TaskStatus
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.sessions import is_sqlite
from taskqueue.models import Lease, Task

# Rows that one statement reads at most.
WINDOW = 20_000
LEAST = UUID(int=0)


class Look(NamedTuple):
    """The next tasks that fit, and the id up to which all have been looked at; None: to the end."""

    ids: list[UUID]
    reached: UUID | None


def narrowed(which: TaskFilter, verb: TaskVerb) -> TaskFilter:
    """Narrow a filter to statuses that allow the verb, unless it lists ids."""
    if which.ids is not None:
        return which
    return replace(which, everything=False, statuses=sorted(verb.statuses_among(which.statuses)))


def fitting(connection: BaseDatabaseWrapper, which: TaskFilter, verb: TaskVerb) -> QuerySet[Task]:
    """The rows of a narrowed filter that the verb may be done to, as far as a filter can tell."""
    return verb.doable(connection, which.tasks(connection), which.statuses or ())


def next_look(
    connection: BaseDatabaseWrapper,
    which: TaskFilter,
    verb: TaskVerb,
    *,
    after: UUID | None,
    last: UUID | None,
    limit: int,
) -> Look:
    """Return the first matching tasks after `after`; for a filter, up to `last`."""
    after = after or LEAST
    if which.ids is not None:
        return _next_chosen(connection, which, after, limit)
    tasks = fitting(connection, which, verb)
    if last is None or not which.statuses:
        return Look([], None)
    edge = _edge(connection, after, last)
    if edge is None:
        return _first(tasks.filter(id__gt=after, id__lte=last), limit, reached=None)
    rare = _rare(connection, which)
    if rare is not None:
        return _of_rare(tasks.filter(id__gt=after, id__lte=last), rare, limit)
    return _first(tasks.filter(id__gt=after, id__lte=edge), limit, reached=edge)


def next_window(
    connection: BaseDatabaseWrapper,
    which: TaskFilter,
    verb: TaskVerb,
    *,
    after: UUID,
    last: UUID | None,
    limit: int,
) -> Look:
    """The same of what no index was found to list, as an earlier look has told."""
    edge = _edge(connection, after, last) if last is not None else None
    tasks = fitting(connection, which, verb)
    return _first(tasks.filter(id__gt=after, id__lte=edge or last), limit, reached=edge)


def _next_chosen(
    connection: BaseDatabaseWrapper, which: TaskFilter, after: UUID, limit: int
) -> Look:
    rest = sorted(each for each in _uuids(which.ids or ()) if each > after)
    tasks = replace(which, ids=rest[:limit]).tasks(connection)
    found = sorted(tasks.values_list("id", flat=True))
    return Look(found, rest[limit - 1] if len(rest) > limit else None)


def _uuids(ids: Iterable[Any]) -> frozenset[UUID]:
    return frozenset(each if isinstance(each, UUID) else UUID(str(each)) for each in ids)


def _edge(connection: BaseDatabaseWrapper, after: UUID, last: UUID) -> UUID | None:
    """The id behind which a window ends; None where no window is needed."""
    rows = Task.objects.using(connection.alias).filter(id__gt=after, id__lte=last)
    ids = rows.order_by("id").values_list("id", flat=True)
    return next(iter(ids[WINDOW - 1 : WINDOW]), None)


def _first(tasks: QuerySet[Task], limit: int, *, reached: UUID | None) -> Look:
    ids = list(tasks.order_by("id").values_list("id", flat=True)[:limit])
    return Look(ids, ids[-1] if len(ids) == limit else reached)


def _of_rare(tasks: QuerySet[Task], parts: list[Q], limit: int) -> Look:
    """Unordered: an ORDER BY id would make the planner walk the primary key."""
    found = set(_united(tasks, parts))
    ids = sorted(found)[:limit]
    return Look(ids, ids[-1] if len(found) > limit else None)


def _rare(connection: BaseDatabaseWrapper, which: TaskFilter) -> list[Q] | None:
    """Conditions that an index answers and that few tasks meet: what fits meets one of them."""
    parts = [
        part for status in which.statuses or () for part in _indexed(connection, TaskStatus(status))
    ]
    if None in parts:
        return None
    found = [part for part in parts if part is not None]
    rows = _united(Task.objects.using(connection.alias), found)
    return found if rows[: WINDOW + 1].count() <= WINDOW else None


def _united(tasks: QuerySet[Task], parts: list[Q]) -> QuerySet[Any, UUID]:
    """The ids of each part, one behind the other, so that each is read by an index of its own."""
    first, *rest = (tasks.filter(part).order_by().values_list("id", flat=True) for part in parts)
    return first.union(*rest, all=True) if rest else first


def _indexed(connection: BaseDatabaseWrapper, status: TaskStatus) -> list[Q | None]:
    """What tells a status so that a partial index serves it; None where none does.

    SQLite takes a partial index only where the text of the statement says what it is for.
    """
    if status in FINISHED:
        return [Q(status=status, finished_at__isnull=False)]
    if is_sqlite(connection):
        return [None]
    if status in WAITING or status == TaskStatus.BLOCKED:
        return [Q(status=status)]
    apart = Q(status=status, route=1)
    if status == TaskStatus.READY:
        return [Q(status=status, route=0), apart]
    running = Lease.objects.using(connection.alias).filter(status=LeaseStatus.RUNNING)
    return [Q(status=status, id__in=running.values("task_id")), apart]
