"""Locking tasks, and what runs of them, before they are changed by hand.

Whoever records attempts locks leases first, then their tasks. So does who needs both here, and who
wants many waits for none of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.states import FINISHED, PENDING, WAITING, LeaseStatus, TaskStatus
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import TaskDoesNotExist
from taskqueue.models import Lease, Task

Statuses = frozenset[TaskStatus]


class Identified(Protocol):
    """What has the id of a task, such as a `TaskResult`."""

    @property
    def id(self) -> UUID | str:
        """The id."""


ALLOWED: dict[str, Statuses] = {
    "cancel": frozenset({*PENDING, TaskStatus.RUNNING}),
    "stop": frozenset({TaskStatus.RUNNING}),
    "retry": FINISHED,
    "run_now": WAITING,
    "reschedule": frozenset({*WAITING, TaskStatus.READY}),
    "update": frozenset({*TaskStatus} - FINISHED),
    "delete": FINISHED,
    "duplicate": frozenset(TaskStatus),
}
"""The statuses in which each verb may be used on tasks."""
ALLOWED_OF_ONE: dict[str, Statuses] = {**ALLOWED, "retry": FINISHED | {TaskStatus.RUNNING}}
"""And where these are asked for: a retry also frees a running task whose worker is lost."""


def statuses_for(verb: str, asked: Collection[str] | None) -> Statuses:
    """The statuses that the verb allows for and a filter asks for.

    A filter that names no statuses does not end what runs in order to retry it.
    """
    if asked is None:
        return ALLOWED[verb]
    return ALLOWED_OF_ONE[verb] & frozenset(map(TaskStatus, asked))


TaskId = UUID | str | Identified
"""A task is given by its id, by the id's text, or as a handle."""


def id_of(task: object) -> UUID:
    """The id that is meant. Raises `TaskDoesNotExist` for what is none."""
    given = getattr(task, "id", task)
    if isinstance(given, UUID):
        return given
    try:
        if isinstance(given, str):
            return UUID(given)
    except ValueError:
        pass
    raise TaskDoesNotExist(f"{task!r} is not the id of a task.")


def locked(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    statuses: Statuses,
    *,
    skip_locked: bool = False,
) -> list[Task]:
    """Lock those of the tasks that have one of these statuses, by id; as they stand then.

    Without their arguments. `skip_locked` leaves out those that others hold: who waits for one
    while holding others may meet somebody who waits for these.
    """
    if ids:
        take_write_lock(connection)
    tasks = Task.objects.using(connection.alias).filter(id__in=ids, status__in=sorted(statuses))
    lean = tasks.order_by("id").defer("args", "kwargs", "return_value")
    return list(lean.select_for_update(skip_locked=skip_locked)) if ids else []


def locked_leases(
    connection: BaseDatabaseWrapper, ids: Sequence[UUID], *, skip_locked: bool = False
) -> tuple[list[Lease], frozenset[UUID]]:
    """Lock the leases that run of these tasks, by id; and the tasks of which somebody has some.

    With `skip_locked` a task is left out of which others hold a lease. They may hold a later one
    that they locked first, for a batch is recorded in several steps.
    """
    if not ids:
        return [], frozenset()
    take_write_lock(connection)
    leases = Lease.objects.using(connection.alias).filter(
        task_id__in=ids, status=LeaseStatus.RUNNING
    )
    lean = leases.order_by("id").only("id", "task", "stop_requested_at", "stop_requested_by")
    found = list(lean.select_for_update(skip_locked=skip_locked))
    if not skip_locked:
        return found, frozenset()
    rest = leases.exclude(id__in=[lease.id for lease in found])
    missed = frozenset(rest.values_list("task_id", flat=True))
    return [lease for lease in found if lease.task_id not in missed], missed


def status_of(connection: BaseDatabaseWrapper, task_id: UUID) -> str:
    """The status of a task at this moment. Raises `TaskDoesNotExist`."""
    tasks = Task.objects.using(connection.alias).filter(id=task_id)
    status = tasks.values_list("status", flat=True).first()
    if status is None:
        raise TaskDoesNotExist(f"There is no task {task_id}.")
    return str(status)
