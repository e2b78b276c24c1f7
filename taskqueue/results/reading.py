"""What of a task can be read: its row, how far it is, why its attempts did not succeed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from taskqueue.engine.connections import database_alias
from taskqueue.exceptions import TaskDoesNotExist
from taskqueue.models import Lease, Task


class Progress(NamedTuple):
    """How far a running body says it is: 0 to 100, or None where it has not said."""

    percent: float | None
    message: str


@dataclass(frozen=True, kw_only=True)
class AttemptError:
    """Why one attempt did not succeed."""

    exception_class_path: str
    message: str
    traceback: str
    attempt: int
    worker_name: str


@dataclass(frozen=True, kw_only=True)
class AttemptRecord:
    """One attempt by one worker, as its lease tells; kept as long as the task."""

    attempt: int
    worker_name: str
    status: str
    """`running`, `succeeded`, `failed`, `lost`, `stopped` or `returned`."""
    return_value: Any
    """What the body returned; only for tasks of several workers, else it is the task's own."""
    error: AttemptError | None
    claimed_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    stop_requested_at: datetime | None
    stop_requested_by: str
    stop_reason: str
    stop_seen_at: datetime | None


def record_of(lease: Lease) -> AttemptRecord:
    """What a lease tells of its attempt."""
    return AttemptRecord(
        attempt=lease.attempt,
        worker_name=lease.worker_id,
        status=lease.status,
        return_value=lease.return_value,
        error=_error_of(lease) if lease.error_class else None,
        claimed_at=lease.claimed_at,
        started_at=lease.started_at,
        finished_at=lease.finished_at,
        stop_requested_at=lease.stop_requested_at,
        stop_requested_by=lease.stop_requested_by,
        stop_reason=lease.stop_reason,
        stop_seen_at=lease.stop_seen_at,
    )


def _error_of(lease: Lease) -> AttemptError:
    return AttemptError(
        exception_class_path=lease.error_class,
        message=lease.error_message,
        traceback=lease.traceback,
        attempt=lease.attempt,
        worker_name=lease.worker_id,
    )


def errors_of(task: Task, leases: Iterable[Lease]) -> list[AttemptError]:
    """Why the attempts of a task did not succeed, oldest first, as its leases tell."""
    errors = [_error_of(lease) for lease in leases if lease.error_class]
    if task.error_class and all(task.error_class != each.exception_class_path for each in errors):
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


def row_of(task_id: UUID) -> Task:
    """The row of a task. Raises `TaskDoesNotExist`."""
    task = Task.objects.using(database_alias()).filter(id=task_id).first()
    if task is None:
        raise TaskDoesNotExist(
            f"There is no task {task_id}: it was never committed, or pruned after its retention."
        )
    return task


def identifier_of(task_id: UUID | str) -> UUID:
    """The id of a task, from its text too. Raises `TaskDoesNotExist`."""
    try:
        return task_id if isinstance(task_id, UUID) else UUID(str(task_id))
    except ValueError:
        raise TaskDoesNotExist(f"{task_id!r} is not the id of a task.") from None
