"""What runs right now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import BooleanField, F
from django.db.models.expressions import RawSQL

from taskqueue.engine.connections import database_alias
from taskqueue.models import Lease
from taskqueue.models.clock import DatabaseClock

# The condition of the index of running leases: in the text, or SQLite would not use it.
IS_RUNNING = "taskqueue_lease.status = 'running'"


@dataclass(frozen=True, kw_only=True)
class RunningTask:
    """An attempt whose body runs."""

    lease_id: int
    task_id: UUID
    name: str
    queue_name: str
    worker: str
    attempt: int
    started_at: datetime
    seconds: float
    progress: float | None
    """In hundredths."""
    progress_message: str
    is_stopping: bool
    is_wedged: bool


def running_now(*, limit: int = 20) -> list[RunningTask]:
    """The attempts that run: those that seem wedged, then the longest; in one query.

    A worker notes the start of a body that runs for a while; what it only holds is left out.
    """
    leases = (
        Lease.objects.using(database_alias())
        .filter(RawSQL(IS_RUNNING, (), output_field=BooleanField()))  # noqa: S611  (a constant)
        .filter(started_at__isnull=False)
        .annotate(now=DatabaseClock())
        .select_related("task")
        .only(
            "attempt", "worker_id", "started_at", "progress", "progress_message",
            "stop_requested_at", "wedged_at", "task__name", "task__queue_name",
        )
        .order_by(F("wedged_at").asc(nulls_last=True), "started_at", "id")[:limit]
    )  # fmt: skip
    return list(map(_running, leases))


def _running(lease: Any) -> RunningTask:
    return RunningTask(
        lease_id=lease.id,
        task_id=lease.task_id,
        name=lease.task.name,
        queue_name=lease.task.queue_name,
        worker=lease.worker_id,
        attempt=lease.attempt,
        started_at=lease.started_at,
        seconds=max(0.0, (lease.now - lease.started_at).total_seconds()),
        progress=lease.progress,
        progress_message=lease.progress_message,
        is_stopping=lease.stop_requested_at is not None,
        is_wedged=lease.wedged_at is not None,
    )
