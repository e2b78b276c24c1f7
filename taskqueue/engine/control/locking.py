"""Lock tasks and their running attempts before they are changed by hand.

The order is: what `lock_first` locks, leases by id, tasks by id. Whoever records attempts locks in
the same order. A verb on many tasks waits for none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import ChangedMeanwhile, TaskDoesNotExist
from taskqueue.models import Lease, Task

Statuses = frozenset[TaskStatus]
Seen = Mapping[str, Any] | Callable[[Any], bool] | None
"""The row as the caller saw it: columns with their values, or a test of the locked row."""


class Identified(Protocol):
    """An object with the id of a task, such as a `TaskResult`."""

    @property
    def id(self) -> UUID | str:
        """The id."""


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
    raise TaskDoesNotExist(f"{task!r} is not the id of a task: write a UUID.")


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
        lock_first(connection)
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
    lock_first(connection)
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


def lock_first(connection: BaseDatabaseWrapper) -> None:
    """Lock what comes before leases and tasks: on SQLite, the database."""
    take_write_lock(connection)


def require_task_seen(connection: BaseDatabaseWrapper, task_id: UUID, seen: Seen) -> None:
    """Lock the task with its attempts, and require that it is as the caller saw it."""
    if seen is None:
        return
    locked_leases(connection, [task_id])
    locked(connection, [task_id], frozenset(TaskStatus))
    task = Task.objects.using(connection.alias).filter(id=task_id).first()
    if task is None:
        raise TaskDoesNotExist(f"There is no task {task_id}.")
    require_seen(task, seen, f"Task {task_id}")


def require_seen(row: Any, seen: Seen, subject: str) -> None:
    """Raise `ChangedMeanwhile` unless the locked row is as the caller saw it."""
    if isinstance(seen, Mapping):
        changed = [name for name, value in seen.items() if getattr(row, name) != value]
        if changed:
            raise ChangedMeanwhile(f"{subject} has changed since you saw it: {changed[0]}.")
    elif seen is not None and not seen(row):
        raise ChangedMeanwhile(f"{subject} has changed since you saw it.")


def status_of(connection: BaseDatabaseWrapper, task_id: UUID) -> str:
    """The status of a task at this moment. Raises `TaskDoesNotExist`."""
    tasks = Task.objects.using(connection.alias).filter(id=task_id)
    status = tasks.values_list("status", flat=True).first()
    if status is None:
        raise TaskDoesNotExist(f"There is no task {task_id}.")
    return str(status)
