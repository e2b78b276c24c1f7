"""Log failed tasks: one record each, for error reporting.

The child that ran the body logs the exception with its traceback. If the child was killed or no
body ran, the process that learns of the failure logs it here, without a traceback.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.log_text import one_line
from taskqueue.core.outcomes import Recorded
from taskqueue.core.states import TaskStatus
from taskqueue.engine.connections import installed
from taskqueue.models import Lease, Task

# The logger of Django's own Tasks framework: by default its errors are mailed to ADMINS.
logger = logging.getLogger("django.tasks")
# The statuses after which no further attempt follows; None if the lease had already ended.
NOT_RETRIED = (None, TaskStatus.CANCELLED, TaskStatus.FAILED, TaskStatus.SUCCEEDED)


class Failure(NamedTuple):
    """A failed attempt, with what is logged about it."""

    task_id: str
    name: str
    attempt: int
    queue_name: str
    error_class: str
    message: str


def extra(*, task_id: str, name: str, attempt: int, queue_name: str) -> dict[str, Any]:
    """Return the fields of a record; never arguments, which may be sensitive."""
    return {"task_id": task_id, "task_name": name, "attempt": attempt, "queue_name": queue_name}


def log_failed(failure: Failure) -> None:
    """Log a task that failed for good, if no process has the exception."""
    _log(logging.ERROR, "Task failed task=%s id=%s attempt=%s queue=%s error=%s: %s", failure)


def log_retried(failure: Failure) -> None:
    """Log an attempt after which the task is retried, if no process has the exception."""
    message = "Attempt failed, the task is retried task=%s id=%s attempt=%s queue=%s error=%s: %s"
    _log(logging.WARNING, message, failure)


def _log(level: int, message: str, failure: Failure) -> None:
    task_id, name, attempt, queue_name, error_class, text = failure
    logger.log(
        level, message, one_line(name), task_id, attempt, one_line(queue_name),
        one_line(error_class), one_line(text[:500]),
        extra=extra(task_id=task_id, name=name, attempt=attempt, queue_name=queue_name),
    )  # fmt: skip


def log_failed_tasks(connection: BaseDatabaseWrapper, task_ids: Iterable[UUID | str]) -> None:
    """Log those of the tasks that have failed. Call it after the failures are committed."""
    chosen = list(task_ids)
    if not chosen:
        return
    columns = "id", "name", "attempt", "queue_name", "error_class", "error_message"
    with installed(connection):
        tasks = Task.objects.using(connection.alias).filter(id__in=chosen, status=TaskStatus.FAILED)
        for task_id, *others in tasks.order_by("id").values_list(*columns):
            log_failed(Failure(str(task_id), *others))


def log_taken_over(connection: BaseDatabaseWrapper, lost: Mapping[int, Recorded]) -> None:
    """Log the attempts that were recorded as lost, by lease."""
    if not lost:
        return
    columns = (
        "id", "task_id", "task__name", "attempt", "task__queue_name",
        "error_class", "error_message",
    )  # fmt: skip
    leases = Lease.objects.using(connection.alias).filter(id__in=list(lost)).order_by("id")
    with installed(connection):
        attempts = list(leases.values_list(*columns))
    failed: set[UUID] = set()
    for lease_id, task_id, *others in attempts:
        task_status = lost[lease_id].task_status
        if task_status == TaskStatus.FAILED:
            failed.add(task_id)
        elif task_status not in NOT_RETRIED:
            log_retried(Failure(str(task_id), *others))
    log_failed_tasks(connection, failed)
