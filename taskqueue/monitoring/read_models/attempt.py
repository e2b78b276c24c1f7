"""Attempts, one run of a task by one worker each, and their log lines."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from taskqueue.core.states import LeaseStatus
from taskqueue.models import Lease, Task, TaskLog
from taskqueue.monitoring.read_models.base import about, from_row
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


@dataclass(frozen=True, kw_only=True)
class AttemptFailure:
    """Why an attempt did not succeed."""

    attempt: int
    worker_name: str
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
    """The name that `logging` gives a level."""
    return str(logging.getLevelName(level))


def shown_attempts(leases: Iterable[Lease]) -> list[ShownAttempt]:
    """Make the read models of leases with all their columns but the return value."""
    return [from_row(ShownAttempt, lease) for lease in leases]


def running_attempts(leases: Iterable[Lease]) -> list[RunningAttempt]:
    """Those of the leases that are running."""
    running = [lease for lease in leases if lease.status == LeaseStatus.RUNNING]
    return [from_row(RunningAttempt, lease) for lease in running]


def failures_of(task: Task, leases: Sequence[Lease]) -> list[AttemptFailure]:
    """Why attempts failed; last, the error of the task itself unless an attempt has the same."""
    failures = [
        AttemptFailure(
            attempt=lease.attempt,
            worker_name=lease.worker_id,
            status=lease.status,
            finished_at=lease.finished_at,
            **failure_of(lease)._asdict(),
        )
        for lease in leases
        if did_not_succeed(lease)
    ]
    if task.error_class and all(
        failure.exception_class_path != task.error_class for failure in failures
    ):
        own = AttemptFailure(
            attempt=task.attempt,
            worker_name="",
            status=LeaseStatus.FAILED.value,
            exception_class_path=task.error_class,
            message=task.error_message,
            finished_at=task.finished_at,
        )
        failures.append(own)
    return failures
