"""Locking tasks before they are changed by hand, and saying why they cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F

from taskqueue.exceptions import TaskDoesNotExist
from taskqueue.models import Task
from taskqueue.states import FINISHED, PENDING, WAITING, TaskStatus

Statuses = frozenset[TaskStatus]

ALLOWED: dict[str, Statuses] = {
    "cancel": frozenset({*PENDING, TaskStatus.RUNNING}),
    "stop": frozenset({TaskStatus.RUNNING}),
    "retry": FINISHED,
    "run_now": WAITING,
    "reschedule": frozenset({*WAITING, TaskStatus.READY}),
    "update": frozenset({*TaskStatus} - FINISHED),
}
"""The statuses in which each verb may be used on a task."""


def locked(connection: BaseDatabaseWrapper, ids: Sequence[UUID], statuses: Statuses) -> list[Task]:
    """Lock those of the tasks that have one of these statuses, by id; as they stand then.

    Without their arguments. A single one is waited for; of many, those that others hold are left
    out: who waits for one while holding others may meet somebody who waits for these. On SQLite
    the transaction takes the write lock.
    """
    if not ids:
        return []
    tasks = Task.objects.using(connection.alias).filter(id__in=ids)
    if connection.vendor == "sqlite":
        tasks.filter(id=ids[0]).update(attempt=F("attempt"))
    chosen = tasks.filter(status__in=sorted(statuses)).order_by("id")
    lean = chosen.defer("args", "kwargs", "return_value")
    return list(lean.select_for_update(skip_locked=len(ids) > 1))


def status_of(connection: BaseDatabaseWrapper, task_id: UUID) -> str:
    """The status of a task at this moment. Raises `TaskDoesNotExist`."""
    tasks = Task.objects.using(connection.alias).filter(id=task_id)
    status = tasks.values_list("status", flat=True).first()
    if status is None:
        raise TaskDoesNotExist(f"There is no task {task_id}.")
    return str(status)
