"""Results of Django's framework, made from our rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from uuid import UUID

from django.core.exceptions import SynchronousOnlyOperation
from django.db import connections

from taskqueue import models, results
from taskqueue.backend.framework import AnyResult, AnyTask, TaskError, TaskResultStatus
from taskqueue.backend.tasks import Lazy, changed, make
from taskqueue.core.retries import class_path
from taskqueue.core.states import PENDING, LeaseStatus, TaskStatus
from taskqueue.engine.connections import database_alias
from taskqueue.exceptions import Cancel

T = TypeVar("T")

# Our statuses, mapped to the four of Django.
STATUSES: dict[str, TaskResultStatus] = {
    **{status.value: TaskResultStatus.READY for status in PENDING},
    TaskStatus.RUNNING: TaskResultStatus.RUNNING,
    TaskStatus.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    TaskStatus.FAILED: TaskResultStatus.FAILED,
    TaskStatus.CANCELLED: TaskResultStatus.FAILED,
}


class QueueResult(Lazy, AnyResult):
    """A result of Django's framework."""

    def __repr__(self) -> str:
        """Return a short text without the arguments, which may be secret."""
        return f"<{type(self).__name__} {self.id} {self.status}>"


def enqueued_result(result: results.TaskResult[Any], task: AnyTask) -> AnyResult:
    """Return the result of a task that was just written, without a query."""
    return make(
        QueueResult,
        {
            "task": changed(task, run_after=_due(result, task)),
            "id": str(result.id),
            "status": STATUSES[result.status],
            "enqueued_at": result.enqueued_at,
            "started_at": None,
            "finished_at": None,
            "last_attempted_at": None,
            "args": result.args,
            "kwargs": result.kwargs,
            "backend": task.backend,
            "errors": [],
            "worker_ids": [],
            "_return_value": None,
        },
    )


def _due(result: results.TaskResult[Any], task: AnyTask) -> Any:
    """Return when the task may start: a delay counts from the enqueue.

    None means at once, as in stored rows, also for a moment in the past.
    """
    after = result.definition.options.run_after if result.definition else None
    is_delay = after is not None and not hasattr(after, "tzinfo")
    due = result.enqueued_at + after if is_delay else task.run_after  # type: ignore[operator]
    return None if due is None or due <= result.enqueued_at else due


Row = tuple[models.Task, list[models.Lease]]


def read_rows(ids: Collection[UUID]) -> dict[UUID, Row]:
    """Return tasks and their attempts by the tasks' ids, in two queries. Works on event loops."""
    return anywhere(lambda: _read_rows(ids))


def _read_rows(ids: Collection[UUID]) -> dict[UUID, Row]:
    tasks = list(models.Task.objects.using(database_alias()).filter(id__in=ids))
    attempts: dict[UUID, list[models.Lease]] = defaultdict(list)
    leases = models.Lease.objects.using(database_alias()).filter(task_id__in=ids)
    for lease in leases.order_by("attempt"):
        attempts[lease.task_id].append(lease)
    # Attempts that began between the two queries are left out.
    return {
        task.id: (task, [lease for lease in attempts[task.id] if lease.attempt <= task.attempt])
        for task in tasks
    }


def anywhere(read: Callable[[], T]) -> T:
    """Read the database; on an event loop in a thread, while the loop waits.

    Django's own tests call `result.refresh()` from async code. The thread does not see uncommitted
    changes of the caller; `arefresh()` does.
    """
    try:
        return read()
    except SynchronousOnlyOperation:
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(_read_and_close, read).result()


def _read_and_close(read: Callable[[], T]) -> T:
    try:
        return read()
    finally:
        connections.close_all()


def stored_result(row: Row, task: AnyTask, *, backend: str) -> AnyResult:
    """Return the result of a stored task."""
    return make(QueueResult, result_values(row, task, backend=backend))


def result_values(row: Row, task: AnyTask, *, backend: str) -> dict[str, Any]:
    """Return the fields of a result."""
    stored, leases = row
    starts = [lease.started_at or lease.claimed_at for lease in leases]
    return {
        "task": changed(task, backend=backend, **task_values(stored)),
        "id": str(stored.id),
        "status": STATUSES[stored.status],
        "enqueued_at": stored.enqueued_at,
        "started_at": stored.started_at or (starts[0] if starts else None),
        "finished_at": stored.finished_at,
        "last_attempted_at": starts[-1] if starts else None,
        "args": stored.args,
        "kwargs": stored.kwargs,
        "backend": backend,
        "errors": list(_errors(stored, leases)),
        "worker_ids": [lease.worker_id for lease in leases],
        "_return_value": stored.return_value,
    }


def task_values(stored: models.Task) -> dict[str, Any]:
    """Return the fields of a task that `.using()` may have changed."""
    return {
        "priority": stored.priority,
        "queue_name": stored.queue_name,
        "run_after": None if stored.run_after == stored.enqueued_at else stored.run_after,
    }


def _errors(stored: models.Task, leases: Sequence[models.Lease]) -> Iterator[TaskError]:
    """Yield an error per failed attempt, and one for a task cancelled between attempts.

    Django calls a cancelled task failed, so it needs an error.
    """
    for error in results.errors_of(stored, leases):
        yield error_told(error.exception_class_path, error.message, error.traceback)
    was_waiting = not leases or leases[-1].status != LeaseStatus.STOPPED
    if stored.status == TaskStatus.CANCELLED and was_waiting:
        yield error_told(class_path(Cancel), stored.error_message)


def error_told(path: str, message: str, traceback: str = "") -> TaskError:
    """Return Django's error. It has no message, so without a traceback, a line gives the reason."""
    line = f"{path}: {message}" if message else path
    return TaskError(exception_class_path=path, traceback=traceback or f"{line}\n")
