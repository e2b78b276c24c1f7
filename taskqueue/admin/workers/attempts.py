"""What a worker holds now, and what it held before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from django.utils.text import Truncator

from taskqueue.access.permissions import STOP
from taskqueue.admin.badges import badge
from taskqueue.admin.display import EMPTY, breakable, moment
from taskqueue.admin.durations import short_duration
from taskqueue.admin.links import Links
from taskqueue.engine.connections import database_alias
from taskqueue.models import Lease, Task
from taskqueue.models.clock import DatabaseClock

MOST_HELD, MOST_PAST = 50, 20
NEWEST = 10_000
"""Attempts of all workers that are looked through for those of one: no index tells them apart."""
LONGEST_MESSAGE = 160
COLUMNS = (
    "task_id", "attempt", "status", "claimed_at", "started_at", "finished_at", "progress",
    "progress_message", "stop_requested_at", "wedged_at", "error_class",
)  # fmt: skip
# The condition of the index of what runs: in the text, or SQLite would not use it.
IS_RUNNING = "taskqueue_lease.status = 'running'"


def _of(worker: str) -> QuerySet[Any]:
    return Lease.objects.using(database_alias()).filter(worker_id=worker).only(*COLUMNS)


def _names(leases: Iterable[Any]) -> dict[Any, str]:
    """The names of their tasks, of those that are there: a join would leave out the others."""
    tasks = Task.objects.using(database_alias())
    return dict(tasks.filter(id__in=[each.task_id for each in leases]).values_list("id", "name"))


def held(request: HttpRequest, links: Links, worker: str) -> list[dict[str, Any]]:
    """Its running attempts, the longest first, with a stop for those who may."""
    running = list(
        _of(worker)
        .filter(RawSQL(IS_RUNNING, (), output_field=BooleanField()))  # noqa: S611  (a constant)
        .annotate(now=DatabaseClock())
        .order_by("id")[:MOST_HELD]
    )
    may_stop = bool(request.user.has_perm(STOP))
    names = _names(running)
    return [_held(lease, names, links, may_stop=may_stop) for lease in running]


def _held(lease: Any, names: dict[Any, str], links: Links, *, may_stop: bool) -> dict[str, Any]:
    since = lease.started_at or lease.claimed_at
    return {
        "task": _task(lease, names, links),
        "attempt": links.to_row(Lease, lease.pk, lease.attempt),
        "since": moment(since),
        "age": short_duration(max(0.0, (lease.now - since).total_seconds())),
        "is_started": lease.started_at is not None,
        "percent": None if lease.progress is None else f"{lease.progress:.0f}",
        "message": Truncator(lease.progress_message).chars(LONGEST_MESSAGE),
        "is_stopping": lease.stop_requested_at is not None,
        "is_wedged": lease.wedged_at is not None,
        "stop_url": links.url_if_any("task_act", lease.task_id)
        if may_stop and lease.stop_requested_at is None
        else "",
    }


def past(links: Links, worker: str) -> list[dict[str, Any]]:
    """Its newest attempts that have ended, among the newest of all workers."""
    rows = Lease.objects.using(database_alias())
    newest = rows.order_by("-id").values_list("id", flat=True).first()
    if newest is None:
        return []
    ended = _of(worker).filter(id__gt=newest - NEWEST, finished_at__isnull=False)
    found = list(ended.order_by("-id")[:MOST_PAST])
    names = _names(found)
    return [_past(lease, names, links) for lease in found]


def _past(lease: Any, names: dict[Any, str], links: Links) -> dict[str, Any]:
    ran = None
    if lease.started_at is not None:
        ran = max(0.0, (lease.finished_at - lease.started_at).total_seconds())
    return {
        "task": _task(lease, names, links),
        "attempt": links.to_row(Lease, lease.pk, lease.attempt),
        "badge": badge(lease.status),
        "finished_at": moment(lease.finished_at),
        "ran": short_duration(ran) or EMPTY,
        "error": breakable(lease.error_class),
    }


def _task(lease: Any, names: dict[Any, str], links: Links) -> Any:
    """A link to its task; only the id where it is gone."""
    if lease.task_id not in names:
        return str(lease.task_id)
    return links.to_row(Task, lease.task_id, breakable(names[lease.task_id]))
