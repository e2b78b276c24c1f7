"""What a task of several workers comes to, once nobody runs it and nobody may take it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.engine.limits import Limits
from taskqueue.engine.retention import Retention
from taskqueue.engine.rows import Ended
from taskqueue.models import Lease, Task

WRITTEN = (
    "attempt", "parked_at", "failures", "crashes", "workers", "worker_names", "open_slots",
    "running_leases", "successes", "status", "started_at", "finished_at", "prune_after",
    "error_class", "error_message", "return_value", "holds_unique_key",
)  # fmt: skip
"""What the end of an attempt may change of its task."""


def leases_of(connection: BaseDatabaseWrapper, task: Task) -> QuerySet[Lease]:
    """All attempts of a task."""
    return Lease.objects.using(connection.alias).filter(task_id=task.id)


def ended(task: Task) -> list[Ended]:
    """Return what is to be announced of a settled task: nothing unless it has ended."""
    if task.finished_at is None:
        return []
    return [Ended(str(task.id), task.queue_name, task.name, str(task.status))]


def settle(connection: BaseDatabaseWrapper, task: Task, *, now: datetime, limits: Limits) -> None:
    """Write the task, and end it if nobody runs it and nobody may take it."""
    if task.running_leases == 0 and task.open_slots == 0:
        _finish(connection, task, now, limits)
    elif task.attempt == 0 and task.status == TaskStatus.RUNNING:
        task.status = TaskStatus.READY  # Nobody has started it after all.
    _write(connection, task)


def cancel_unless_running(
    connection: BaseDatabaseWrapper, task: Task, *, now: datetime, limits: Limits, reason: str
) -> None:
    """Write the task, and end it as cancelled if nobody runs it."""
    if task.running_leases == 0:
        task.error_class, task.error_message = "", reason
        _end(task, TaskStatus.CANCELLED, now, limits.keep_cancelled)
    _write(connection, task)


def _write(connection: BaseDatabaseWrapper, task: Task) -> None:
    values: dict[str, Any] = {name: getattr(task, name) for name in WRITTEN}
    Task.objects.using(connection.alias).filter(id=task.id).update(**values)


def _finish(connection: BaseDatabaseWrapper, task: Task, now: datetime, limits: Limits) -> None:
    leases = leases_of(connection, task)
    this_time = leases.filter(attempt__gt=task.attempts_before_retry)
    if 0 < task.workers <= task.successes:
        task.error_class = task.error_message = ""
        done = leases.filter(status=LeaseStatus.SUCCEEDED, is_shared=True).order_by(
            "finished_at", "attempt"
        )
        task.return_value = list(done.values_list("return_value", flat=True))
        _end(task, TaskStatus.SUCCEEDED, now, limits.keep_succeeded)
    elif stopped := _stopped_one(this_time):
        task.error_class, task.error_message = "", stopped.stop_reason or stopped.error_message
        _end(task, TaskStatus.CANCELLED, now, limits.keep_cancelled)
    else:
        last = this_time.exclude(error_class="").order_by("attempt").last()
        if last is not None and not task.error_class:
            task.error_class, task.error_message = last.error_class, last.error_message
        _end(task, TaskStatus.FAILED, now, limits.keep_failed)


def _stopped_one(leases: QuerySet[Lease]) -> Lease | None:
    """An attempt that somebody asked to stop, or that cancelled the task itself."""
    ordered = leases.order_by("attempt")
    asked = ordered.filter(stop_requested_at__isnull=False).first()
    return asked or ordered.filter(status=LeaseStatus.STOPPED).first()


def _end(task: Task, status: TaskStatus, now: datetime, kept_for: timedelta | None) -> None:
    retention = Retention.of(task)
    task.status = status.value
    task.finished_at = now
    task.prune_after = retention.prune_after(now, kept_for)
    task.holds_unique_key = retention.keeps_key
