"""The log of failed tasks: each is one record, which error reporting takes up.

The child that ran the body logs what it raised, with the traceback. What no child could log, since
it was killed or no body ran, is logged here without one, by the process that learns of it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.log_text import one_line
from taskqueue.core.outcomes import Recorded
from taskqueue.core.states import TaskStatus
from taskqueue.engine.connections import installed
from taskqueue.models import Lease, Task

logger = logging.getLogger("django.tasks")
"""The logger of Django's own Tasks framework: by default its errors are mailed to ADMINS."""
NOT_RETRIED = (None, TaskStatus.CANCELLED, TaskStatus.FAILED, TaskStatus.SUCCEEDED)
"""The statuses of a task that no further attempt follows."""
OF_ATTEMPT = ("attempt", "error_class", "error_message", "task__name", "task__queue_name")
"""The columns that a record of an attempt tells."""


def extra(*, task_id: str, name: str, attempt: int, queue_name: str) -> dict[str, Any]:
    """The fields of a record; never arguments, which may be sensitive."""
    return {"task_id": task_id, "task_name": name, "attempt": attempt, "queue_name": queue_name}


def log_failed(
    *, task_id: str, name: str, attempt: int, queue_name: str, error_class: str, message: str
) -> None:
    """Log a task that failed for good, where no process has the exception."""
    logger.error(
        "Task failed task=%s id=%s attempt=%s queue=%s error=%s: %s",
        one_line(name), task_id, attempt, one_line(queue_name), one_line(error_class),
        one_line(message[:500]),
        extra=extra(task_id=task_id, name=name, attempt=attempt, queue_name=queue_name),
    )  # fmt: skip


def log_failed_tasks(connection: BaseDatabaseWrapper, task_ids: Iterable[UUID | str]) -> None:
    """Log those of the tasks that have failed. Call it once that is committed."""
    chosen = list(task_ids)
    if not chosen:
        return
    with installed(connection):
        tasks = Task.objects.using(connection.alias).filter(id__in=chosen, status=TaskStatus.FAILED)
        for task in tasks.order_by("id"):
            log_failed(
                task_id=str(task.id),
                name=task.name,
                attempt=task.attempt,
                queue_name=task.queue_name,
                error_class=task.error_class,
                message=task.error_message,
            )


def log_retried(
    *, task_id: str, name: str, attempt: int, queue_name: str, error_class: str, message: str
) -> None:
    """Log an attempt after which the task is retried, where no process has the exception."""
    logger.warning(
        "Attempt failed, the task is retried task=%s id=%s attempt=%s queue=%s error=%s: %s",
        one_line(name), task_id, attempt, one_line(queue_name), one_line(error_class),
        one_line(message[:500]),
        extra=extra(task_id=task_id, name=name, attempt=attempt, queue_name=queue_name),
    )  # fmt: skip


def log_taken_over(connection: BaseDatabaseWrapper, lost: Mapping[int, Recorded]) -> None:
    """Log the attempts that were recorded as lost, by lease."""
    if not lost:
        return
    leases = Lease.objects.using(connection.alias).filter(id__in=list(lost)).order_by("id")
    with installed(connection):
        attempts = list(leases.select_related("task").only(*OF_ATTEMPT))
    for lease in attempts:
        if lost[lease.id].task_status not in NOT_RETRIED:
            log_retried(
                task_id=str(lease.task_id),
                name=lease.task.name,
                attempt=lease.attempt,
                queue_name=lease.task.queue_name,
                error_class=lease.error_class,
                message=lease.error_message,
            )
    failed = {
        lease.task_id for lease in attempts if lost[lease.id].task_status == TaskStatus.FAILED
    }
    log_failed_tasks(connection, failed)
