"""The tasks that are running now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import BooleanField, F
from django.db.models.expressions import RawSQL

from taskqueue.engine.connections import database_alias
from taskqueue.models import Lease
from taskqueue.models.clock import DatabaseClock
from taskqueue.monitoring.read_models.attempt import RunningAttempt
from taskqueue.monitoring.read_models.base import about, columns_of, from_row

# The condition of the index of running leases: in the text, or SQLite would not use it.
IS_RUNNING = "taskqueue_lease.status = 'running'"


@dataclass(frozen=True, kw_only=True)
class RunningTask(RunningAttempt):
    """A task whose body is running, with its attempt."""

    lease_id: int = about(column="id")
    task_id: UUID
    name: str
    queue_name: str
    running_seconds: float


def running_now(*, limit: int = 20) -> list[RunningTask]:
    """Return the running attempts in one query: wedged ones first, then the longest.

    Attempts that a worker only holds, or has just started, are left out.
    """
    leases = (
        Lease.objects.using(database_alias())
        .filter(RawSQL(IS_RUNNING, (), output_field=BooleanField()))  # noqa: S611  (a constant)
        .filter(started_at__isnull=False)
        .annotate(now=DatabaseClock())
        .select_related("task")
        .only(*columns_of(RunningAttempt).values(), "task__name", "task__queue_name")
        .order_by(F("wedged_at").asc(nulls_last=True), "started_at", "id")[:limit]
    )
    return list(map(_running_task, leases))


def _running_task(lease: Any) -> RunningTask:
    return from_row(
        RunningTask,
        lease,
        name=lease.task.name,
        queue_name=lease.task.queue_name,
        running_seconds=max(0.0, (lease.now - lease.started_at).total_seconds()),
    )
