"""Plans for reading the tasks that match a filter in the order of an index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL

from taskqueue.core.states import FINISHED, WAITING, TaskStatus
from taskqueue.engine.control.filters import TaskFilter, each_of
from taskqueue.models import Lease, Occurrence, Task
from taskqueue.monitoring.reading import is_postgresql
from taskqueue.monitoring.searching.orders import BY_END, BY_ID, Order, first_id_at

# The most rows that are filtered one by one; of more rows, only those that a page needs.
MOST_CANDIDATES = 1_000
# The allowed difference between the clocks of the database and of an id's creator.
SKEW = timedelta(hours=1)
# Conditions of partial indexes, word by word: SQLite does not use the index otherwise.
IS_WAITING = "taskqueue_task.status IN ('blocked', 'retrying', 'scheduled')"
IS_READY = "taskqueue_task.status = 'ready' AND taskqueue_task.route = 0"
IS_APART = "taskqueue_task.status IN ('ready', 'running') AND taskqueue_task.route = 1"
IS_LIMITED = "taskqueue_task.status = 'ready' AND taskqueue_task.route = 2"
IS_LEASED = "taskqueue_lease.status = 'running'"
INDEXED = frozenset({*WAITING, TaskStatus.BLOCKED})
LIVE = frozenset({TaskStatus.READY, TaskStatus.RUNNING})
# A task that was enqueued after a time has also ended after it.
ENDED_AFTER = ("enqueued_after", "finished_after", "failed_after")
HAS_ENDED = frozenset({"finished_after", "finished_before", "failed_after"})
CAN_HAVE_ERROR = frozenset({TaskStatus.FAILED, TaskStatus.CANCELLED})


@dataclass(frozen=True)
class Stream:
    """Some of the tasks: in the order of an index, or few enough to be sorted."""

    condition: Q
    # Whether all of its tasks may be read.
    is_short: bool = False


@dataclass(frozen=True)
class Plan:
    """How to read matching tasks: from one stream, or from several that are merged."""

    order: Order
    streams: Sequence[Stream]
    # Whether all tasks of the streams match, so that no row is read in vain.
    is_exact: bool
    # Statuses whose tasks were looked up for the plan, by two queries each.
    looked_up: int = 0


def literal(condition: str) -> Q:
    """Return a constant condition in the exact words of an index."""
    return Q(RawSQL(condition, (), output_field=BooleanField()))  # noqa: S611  (constants)


def plan(which: TaskFilter, tasks: QuerySet[Task], order: Order | None = None) -> Plan:
    """Return how to read the matching tasks: by end if all of them have ended.

    Another order may be given.
    """
    filters = which.given
    statuses = _statuses(filters)
    have_ended = statuses is not None and statuses <= FINISHED
    order = order or (BY_END if have_ended else BY_ID)
    is_exact = filters.keys() <= {"statuses", "everything"} and not tasks.query.where
    short = _short(filters, tasks.db)
    if short is not None:
        return Plan(order, [Stream(Q(id__in=short), is_short=True)], is_exact=False)
    by_id_though_ended = have_ended and order == BY_ID
    if by_id_though_ended or statuses is None or not (have_ended or statuses <= INDEXED | LIVE):
        everything = Stream(_around(filters))
        return Plan(order, [everything], is_exact and statuses is None)
    streams = [_of_status(status, filters, tasks) for status in sorted(statuses)]
    live = statuses & LIVE
    return Plan(order, streams, is_exact and not live, looked_up=len(live))


def _statuses(filters: dict[str, Any]) -> frozenset[TaskStatus] | None:
    """Return the statuses of tasks that may match; None for all."""
    statuses = None
    if "statuses" in filters:
        statuses = frozenset(map(TaskStatus, filters["statuses"]))
    possible = [
        FINISHED if HAS_ENDED & filters.keys() else None,
        frozenset({TaskStatus.FAILED}) if "failed_after" in filters else None,
        CAN_HAVE_ERROR if _asks_for_error(filters) else None,
    ]
    for those in filter(None, possible):
        statuses = those if statuses is None else statuses & those
    return statuses


def _asks_for_error(filters: dict[str, Any]) -> bool:
    """Whether only tasks with an error match; an empty path matches tasks without."""
    if "error_path" in filters and "" not in each_of(filters["error_path"]):
        return True
    return "error_class" in filters or "error_text" in filters


def _of_status(status: TaskStatus, filters: dict[str, Any], tasks: QuerySet[Task]) -> Stream:
    if status in FINISHED:
        ended = Q(status=status.value, finished_at__isnull=False)
        after = [filters[name] for name in ENDED_AFTER if name in filters]
        if after:
            ended &= Q(finished_at__gte=max(after))
        if "finished_before" in filters:
            ended &= Q(finished_at__lte=filters["finished_before"])
        return Stream(ended)
    if status in INDEXED:
        waiting = Q(status=status.value)
        if not is_postgresql():
            waiting &= literal(IS_WAITING)
        return Stream(waiting)
    ids = _live(status, filters, tasks.db)
    if ids is not None:
        return Stream(Q(status=status.value, id__in=ids), is_short=True)
    return Stream(_around(filters))


def _around(filters: dict[str, Any]) -> Q:
    """Return a condition for all tasks, or for ids of about the time in the filter."""
    around = Q()
    try:
        if "enqueued_after" in filters:
            around &= Q(id__gte=first_id_at(filters["enqueued_after"] - SKEW))
        if "enqueued_before" in filters:
            around &= Q(id__lt=first_id_at(filters["enqueued_before"] + SKEW))
    except OverflowError:  # The first or the last hour that can be represented.
        return Q()
    return around


def _short(filters: dict[str, Any], alias: str) -> Collection[UUID] | None:
    """Return few ids that include all matching tasks; None if no index has them."""
    if "ids" in filters:
        return tuple(filters["ids"])
    if "schedule" not in filters:
        return None
    names = (
        [filters["schedule"]] if isinstance(filters["schedule"], str) else list(filters["schedule"])
    )
    runs = Occurrence.objects.using(alias).filter(schedule__name__in=names, task__isnull=False)
    return _at_most(runs.order_by("schedule", "-nominal_at").values_list("task_id", flat=True))


def _live(status: TaskStatus, filters: dict[str, Any], alias: str) -> list[UUID] | None:
    """Return the ids of ready or running tasks; None if there are too many."""
    tasks = Task.objects.using(alias)
    apart = tasks.filter(literal(IS_APART)).order_by("pinned_to").values_list("id", flat=True)
    if status == TaskStatus.RUNNING:
        leases = Lease.objects.using(alias).filter(literal(IS_LEASED)).order_by("worker_id")
        found: list[Any] = [leases.values_list("task_id", flat=True)]
    else:
        ready = tasks.filter(literal(IS_READY))
        if "queue_name" in filters:
            names = filters["queue_name"]
            ready = ready.filter(queue_name__in=[names] if isinstance(names, str) else list(names))
        limited = tasks.filter(literal(IS_LIMITED)).order_by("partition")
        found = [ready.order_by("queue_name").values_list("id", flat=True)]
        found.append(limited.values_list("id", flat=True))
    ids: set[UUID] = set()
    for candidates in (*found, apart):
        some = _at_most(candidates)
        if some is None:
            return None
        ids |= set(some)
    return list(ids)


def _at_most(ids: Any) -> list[UUID] | None:
    candidates = list(ids[: MOST_CANDIDATES + 1])
    return candidates if len(candidates) <= MOST_CANDIDATES else None
