"""Reading tasks: rows, attempts, errors and cancellations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, NamedTuple, Self
from uuid import UUID

from django.core.exceptions import SynchronousOnlyOperation

from taskqueue.core.retries import class_path
from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.engine.connections import database_alias
from taskqueue.engine.lost import ENDED_BY_HAND
from taskqueue.exceptions import Cancel, Stopped, TaskDoesNotExist
from taskqueue.models import Audit, Lease, Task, TaskLog

# Seconds that may lie between the end of a task and the line that audits it.
ONE_ACT = 60
_NO_SUCCESS = frozenset({LeaseStatus.FAILED, LeaseStatus.LOST, LeaseStatus.STOPPED})


class _Said(NamedTuple):
    percent: float | None
    message: str


class Progress(_Said):
    """The progress that a running body reports: 0 to 100, or None before it reports any.

    A pair of percent and message; `detail` is the JSON value that the body gave besides, or None.
    """

    detail: Any

    def __new__(cls, percent: float | None, message: str, detail: Any = None) -> Self:
        progress = super().__new__(cls, percent, message)
        progress.detail = detail
        return progress


class Failure(NamedTuple):
    """Why an attempt did not succeed, in short."""

    exception_class_path: str
    message: str


class Cancellation(NamedTuple):
    """The person who cancelled a task or asked it to stop, and the reason."""

    by: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class AttemptError:
    """The error of one attempt that did not succeed."""

    exception_class_path: str
    message: str
    traceback: str
    attempt: int
    worker_name: str


@dataclass(frozen=True, kw_only=True)
class AttemptRecord:
    """An attempt by a worker, read from its lease; it is kept as long as the task."""

    attempt: int
    worker_name: str
    # `running`, `succeeded`, `failed`, `lost`, `stopped` or `returned`.
    status: str
    # The value of the body, for tasks of several workers only; else it is the task's own.
    return_value: Any
    error: AttemptError | None
    claimed_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    stop_requested_at: datetime | None
    stop_requested_by: str
    stop_reason: str
    stop_seen_at: datetime | None
    # The checkpoint that the body stored.
    checkpoint: Any


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One captured line of the log of an attempt."""

    attempt: int
    logged_at: datetime
    # As `logging` counts: 20 is INFO.
    level: int
    logger: str
    message: str


def lines_of(task_id: UUID, *, attempt: int | None, level: int) -> list[LogLine]:
    """Return the captured lines of a task, or of one attempt, in their order."""
    rows = TaskLog.objects.using(database_alias()).filter(task_id=task_id, level__gte=level)
    if attempt is not None:
        rows = rows.filter(attempt=attempt)
    names = [field.name for field in fields(LogLine)]
    return [LogLine(**row) for row in rows.order_by("id").values(*names)]


def record_of(lease: Lease) -> AttemptRecord:
    """Return the attempt of a lease."""
    error = error_of(lease) if did_not_succeed(lease) else None
    own: dict[str, Any] = {"worker_name": lease.worker_id, "error": error}
    names = {field.name for field in fields(AttemptRecord)} - own.keys()
    return AttemptRecord(**own, **{name: getattr(lease, name) for name in names})


def did_not_succeed(lease: Lease) -> bool:
    """Return whether an attempt failed, was lost or stopped, or was returned with an error.

    A return because of a shutdown or a snooze is not an error.
    """
    return bool(lease.error_class) or lease.status in _NO_SUCCESS


def failure_of(lease: Lease) -> Failure:
    """Return why an attempt did not succeed. A stopped one has no exception of its own."""
    if lease.error_class:
        return Failure(lease.error_class, lease.error_message)
    if lease.stop_requested_at is None:
        return Failure(class_path(Cancel), lease.error_message)
    by = lease.stop_requested_by or "Somebody"
    return Failure(class_path(Stopped), lease.error_message or f"{by} asked the task to stop.")


def error_of(lease: Lease) -> AttemptError:
    """Return why an attempt did not succeed, with its traceback."""
    path, message = failure_of(lease)
    return AttemptError(
        exception_class_path=path,
        message=message,
        traceback=lease.traceback,
        attempt=lease.attempt,
        worker_name=lease.worker_id,
    )


def errors_of(task: Task, leases: Iterable[Lease]) -> list[AttemptError]:
    """Return why the attempts of a task did not succeed, oldest first."""
    errors = [error_of(lease) for lease in leases if did_not_succeed(lease)]
    if task.error_class and all(task.error_class != error.exception_class_path for error in errors):
        errors.append(
            AttemptError(
                exception_class_path=task.error_class,
                message=task.error_message,
                traceback="",
                attempt=task.attempt,
                worker_name="",
            )
        )
    return errors


def cancellation_of(task: Task, leases: Iterable[Lease]) -> Cancellation | None:
    """Find the person who cancelled a task or asked it to stop, and the reason; None if nobody did.

    It is read from the attempt that was asked to stop, or from the audit. `by` is empty if no
    person did it, as for an expiry.
    """
    if task.status not in (TaskStatus.RUNNING, TaskStatus.CANCELLED):
        return None
    asked = [
        lease
        for lease in leases
        if lease.stop_requested_at is not None and lease.attempt > task.attempts_before_retry
    ]
    if asked:
        latest = max(asked, key=lambda lease: lease.attempt)
        told = "" if task.error_message == ENDED_BY_HAND else task.error_message
        return Cancellation(latest.stop_requested_by, latest.stop_reason or told)
    if task.status == TaskStatus.RUNNING:
        return None
    acts = Audit.objects.using(database_alias()).filter(
        subject=str(task.id), verb__in=("cancel", "stop")
    )
    act = acts.order_by("-id").first()
    if act is None or not _is_of_this_end(task, act):
        return Cancellation("", task.error_message)
    return Cancellation(act.actor, act.reason or task.error_message)


def _is_of_this_end(task: Task, act: Audit) -> bool:
    """Return whether the act ended the task, which may have been retried since."""
    if task.finished_at is None or act.at is None:
        return False
    return abs((task.finished_at - act.at).total_seconds()) < ONE_ACT


@contextmanager
def naming_arefresh() -> Iterator[None]:
    """Let the error of a read in async code name the method to call."""
    try:
        yield
    except SynchronousOnlyOperation:
        raise SynchronousOnlyOperation(
            "This attribute needs the database, which async code must not wait for. Call `await "
            "result.arefresh()` first: then all attributes of the result can be read."
        ) from None


def row_of(task_id: UUID) -> Task:
    """Return the row of a task. Raises `TaskDoesNotExist`."""
    task = Task.objects.using(database_alias()).filter(id=task_id).first()
    if task is None:
        raise TaskDoesNotExist(
            f"There is no task {task_id}: it was never committed, or it was pruned."
        )
    return task
