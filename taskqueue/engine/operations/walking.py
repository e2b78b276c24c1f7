"""Walk over the tasks of an operation in the order of their ids, in bounded steps.

However few tasks match, and however large the table is, one statement reads at most `WINDOW` rows:
a range of ids, or all tasks of a status that is rare enough for an index to list them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q, QuerySet

from taskqueue.core.states import FINISHED, WAITING, LeaseStatus, TaskStatus
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.control.locking import id_of
from taskqueue.engine.control.task_verbs import bulk_verb
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.sessions import is_sqlite
from taskqueue.models import Lease, Task

# The most rows that one statement reads.
WINDOW = 20_000
LEAST = UUID(int=0)
# The most tasks that an estimate counts.
CAP = 10_000
# The most looks of an estimate; if they do not suffice, the number stays open.
MOST_LOOKS = 3


class Look(NamedTuple):
    """The next matching tasks, and the id up to which all were checked; None if that is the end."""

    ids: list[UUID]
    reached: UUID | None


class Walker:
    """Finds the tasks of a filter to which a verb may be applied, up to the id `last`."""

    def __init__(
        self, connection: BaseDatabaseWrapper, which: TaskFilter, verb: TaskVerb, last: UUID | None
    ) -> None:
        if which.ids is None:
            statuses = sorted(verb.statuses_among(which.statuses))
            which = replace(which, everything=False, statuses=statuses)
        self._connection = connection
        self._which = which
        self._statuses = [TaskStatus(status) for status in which.statuses or ()]
        self._fitting = fitting(connection, which, verb)
        self._all = Task.objects.using(connection.alias)
        self._last = last

    def look(self, after: UUID | None, *, limit: int) -> Look:
        """Return the first matching tasks after `after`; for listed ids, the tasks that exist."""
        after = after or LEAST
        if self._which.ids is not None:
            return self._next_chosen(after, limit)
        if self._last is None or not self._statuses:
            return Look([], None)
        rest = Q(id__gt=after, id__lte=self._last)
        ids = self._all.filter(rest).order_by("id").values_list("id", flat=True)
        # The last id of the window; None if no window is needed.
        edge = next(iter(ids[WINDOW - 1 : WINDOW]), None)
        if edge is not None and self._rare is not None:
            # Unordered: an ORDER BY id would make the planner walk the primary key.
            rare = sorted(set(_united(self._fitting.filter(rest), self._rare)))
            return Look(rare[:limit], rare[limit - 1] if len(rare) > limit else None)
        window = self._fitting.filter(id__gt=after, id__lte=edge or self._last)
        first = list(window.order_by("id").values_list("id", flat=True)[:limit])
        return Look(first, first[-1] if len(first) == limit else edge)

    def _next_chosen(self, after: UUID, limit: int) -> Look:
        rest = sorted(key for key in map(id_of, self._which.ids or ()) if key > after)
        tasks = replace(self._which, ids=rest[:limit]).tasks(self._connection)
        found = sorted(tasks.values_list("id", flat=True))
        return Look(found, rest[limit - 1] if len(rest) > limit else None)

    @cached_property
    def _rare(self) -> list[Q] | None:
        """Return conditions that an index answers and few tasks meet. Each match meets one of them.

        SQLite uses a partial index only if the statement contains the index's condition.
        """
        if is_sqlite(self._connection) and not FINISHED.issuperset(self._statuses):
            return None
        parts = [part for status in self._statuses for part in self._indexed(status)]
        rows = _united(self._all.all(), parts)
        return parts if rows[: WINDOW + 1].count() <= WINDOW else None

    def _indexed(self, status: TaskStatus) -> list[Q]:
        """Return conditions for a status with which a partial index can be used."""
        if status in FINISHED:
            return [Q(status=status, finished_at__isnull=False)]
        if status in WAITING or status == TaskStatus.BLOCKED:
            return [Q(status=status)]
        apart = Q(status=status, route=1)
        if status == TaskStatus.READY:
            return [Q(status=status, route=0), apart]
        leases = Lease.objects.using(self._connection.alias).filter(status=LeaseStatus.RUNNING)
        return [Q(status=status, id__in=leases.values("task_id")), apart]


def fitting(connection: BaseDatabaseWrapper, which: TaskFilter, verb: TaskVerb) -> QuerySet[Task]:
    """Return the rows of a filter to which the verb may be applied, as far as a filter can tell."""
    return verb.fitting(connection, which.tasks(connection), which.statuses or ())


def _united(tasks: QuerySet[Task], parts: list[Q]) -> QuerySet[Any, UUID]:
    """Return the ids, one part after the other, so that each part is read by its own index."""
    first, *rest = (tasks.filter(part).order_by().values_list("id", flat=True) for part in parts)
    return first.union(*rest, all=True) if rest else first


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The tasks that an operation would find now."""

    # For listed ids, how many of the tasks exist; for a filter, the same as `doable`.
    fitting: int
    # How many tasks allow the verb.
    doable: int
    # Whether there may be more.
    is_capped: bool
    # Some of the tasks that allow it, oldest first, without their arguments.
    sample: list[Task]


def estimate(verb_name: str, which: TaskFilter, *, sample: int = 10) -> Estimate:
    """Count the tasks, in bounded time whatever the table holds. Raises ValueError."""
    verb = bulk_verb(verb_name)
    connection = project_connection()
    walker = Walker(connection, which, verb, newest_id(connection))
    ids: list[UUID] = []
    reached: UUID | None = None
    for _ in range(MOST_LOOKS):
        look = walker.look(reached, limit=CAP + 1)
        ids += look.ids
        reached = look.reached
        if reached is None or len(ids) >= CAP:
            break
    is_capped = reached is not None or len(ids) > CAP
    doable = ids = ids[:CAP]
    if which.ids is not None:
        allowed = TaskFilter(ids=ids, statuses=sorted(verb.statuses_among(which.statuses)))
        doable = sorted(fitting(connection, allowed, verb).values_list("id", flat=True))
    tasks = Task.objects.using(connection.alias).filter(id__in=doable[:sample]).order_by("id")
    lean = tasks.only("id", "name", "queue_name", "status", "enqueued_at", "error_class")
    return Estimate(fitting=len(ids), doable=len(doable), is_capped=is_capped, sample=list(lean))


def newest_id(connection: BaseDatabaseWrapper) -> UUID | None:
    """Return the greatest id of any task."""
    ids = Task.objects.using(connection.alias).order_by("-id").values_list("id", flat=True)
    return ids.first()
