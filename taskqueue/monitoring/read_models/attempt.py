"""Attempts, one run of a task by one worker each, their log lines, and audit entries."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import BooleanField, F
from django.db.models.expressions import RawSQL

from taskqueue.core.states import LeaseStatus
from taskqueue.engine.connections import database_alias
from taskqueue.models import Lease, Task, TaskLog
from taskqueue.models.parts import DatabaseClock
from taskqueue.monitoring.read_models.base import (
    Viewer,
    about,
    columns_of,
    from_row,
    visible_checkpoint,
)
from taskqueue.results.reading import did_not_succeed, failure_of

STATUSES = [status.value for status in LeaseStatus]


@dataclass(frozen=True, kw_only=True)
class RunningAttempt:
    """An attempt that is running."""

    attempt: int
    worker_name: str = about(column="worker_id")
    claimed_at: datetime
    started_at: datetime | None = about("null: it is only claimed.")
    progress: float | None = about("Percent.")
    progress_message: str
    progress_detail: Any = about("What the body reported beside the message, as JSON.")
    stop_requested_at: datetime | None
    stop_requested_by: str
    stop_reason: str
    stop_seen_at: datetime | None
    wedged_at: datetime | None = about("Since when it seems to hang.")

    @property
    def is_stopping(self) -> bool:
        """Whether it was asked to stop."""
        return self.stop_requested_at is not None

    @property
    def is_wedged(self) -> bool:
        """Whether it seems to hang."""
        return self.wedged_at is not None


@dataclass(frozen=True, kw_only=True)
class ShownAttempt(RunningAttempt):
    """An attempt by one worker."""

    status: str = about(choices=STATUSES)
    expires_at: datetime = about("When a running attempt counts as lost.")
    finished_at: datetime | None
    error_class: str
    error_message: str
    traceback: str
    checkpoint: Any = about(
        "What the body stored for the next attempt; null also if you may not view it. Hidden where"
        " the task has sensitive arguments."
    )
    checkpointed_at: datetime | None


def shown_attempts(leases: Iterable[Lease], name: str, viewer: Viewer) -> list[ShownAttempt]:
    """Make the read models of the attempts of a task."""
    return [
        from_row(ShownAttempt, lease, checkpoint=visible_checkpoint(name, lease.checkpoint, viewer))
        for lease in leases
    ]


@dataclass(frozen=True, kw_only=True)
class AttemptFailure:
    """Why an attempt did not succeed."""

    attempt: int
    worker_name: str = about(column="worker_id")
    status: str = about(choices=STATUSES)
    exception_class_path: str
    message: str
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class ShownLogLine:
    """One line of the log of an attempt."""

    id: int
    attempt: int
    logged_at: datetime
    level: int = about("As `logging` counts: 20 is INFO.")
    level_name: str
    logger: str
    message: str


def log_lines(rows: Iterable[TaskLog]) -> list[ShownLogLine]:
    """Make the read models of rows."""
    return [from_row(ShownLogLine, row, level_name=level_name(row.level)) for row in rows]


def level_name(level: int) -> str:
    """Return the name that `logging` gives a level."""
    return str(logging.getLevelName(level))


def failures_of(task: Task, leases: Sequence[Lease]) -> list[AttemptFailure]:
    """Return why attempts failed; last, the task's own error unless an attempt has the same."""
    failures = [
        from_row(AttemptFailure, lease, **failure_of(lease)._asdict())
        for lease in leases
        if did_not_succeed(lease)
    ]
    if task.error_class not in ("", *(failure.exception_class_path for failure in failures)):
        own = AttemptFailure(
            attempt=task.attempt, worker_name="", status=LeaseStatus.FAILED.value,
            exception_class_path=task.error_class, message=task.error_message,
            finished_at=task.finished_at,
        )  # fmt: skip
        failures.append(own)
    return failures


# The condition of the index of running leases, written literally because SQLite would not use it
# otherwise.
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
