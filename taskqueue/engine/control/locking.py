"""Locking tasks and their running attempts before people change them.

The order is: on SQLite the database (`take_write_lock`), then leases by id, then tasks by id.
Recording attempts uses the same order. A verb on many tasks waits for none of these locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.refusals import refusal as _
from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.engine.control.audit import Act, Person, audit
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import ChangedMeanwhile, TaskDoesNotExist
from taskqueue.models import Lease, Task

Statuses = frozenset[TaskStatus]
# The row as the caller saw it: its columns' values, or a test of the locked row.
Seen = Mapping[str, Any] | Callable[[Any], bool] | None


class Identified(Protocol):
    """An object with the id of a task, such as a `TaskResult`."""

    @property
    def id(self) -> UUID | str:
        """The id."""


# A task is given by its id, by the id's text, or as a handle.
TaskId = UUID | str | Identified


def id_of(task: object) -> UUID:
    """Return the id of a task. Raises `TaskDoesNotExist` for a value that is not an id."""
    given = getattr(task, "id", task)
    if isinstance(given, UUID):
        return given
    with suppress(ValueError):
        if isinstance(given, str):
            return UUID(given)
    raise TaskDoesNotExist(_("{task!r} is not the id of a task: write a UUID.", task=task))


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The tasks that a person has chosen for a verb, in the caller's transaction.

    With `is_bulk` a verb skips tasks that other sessions have locked, and tasks that its arguments
    do not fit: waiting for a task while holding others could cause a deadlock.
    """

    connection: BaseDatabaseWrapper
    ids: Sequence[UUID]
    statuses: Statuses  # The statuses that allow the verb.
    person: Person
    is_bulk: bool = False

    def of(self, ids: Iterable[UUID], statuses: Statuses = frozenset(TaskStatus)) -> Selection:
        """Return this selection with other ids, in these statuses."""
        return replace(self, ids=list(ids), statuses=statuses)

    def now(self) -> datetime:
        """Return the time by the database's clock."""
        return dialect_for(self.connection).now(self.connection)

    def rows(self) -> QuerySet[Task]:
        """Return the rows of the tasks, whatever their statuses."""
        return Task.objects.using(self.connection.alias).filter(id__in=self.ids)

    def locked(self) -> list[Task]:
        """Lock the tasks with one of the statuses, by id.

        Return them as they are then, without arguments. A bulk verb skips those that other sessions
        have locked.
        """
        if not self.ids:
            return []
        take_write_lock(self.connection)
        tasks = self.rows().filter(status__in=sorted(self.statuses)).order_by("id")
        lean = tasks.defer("args", "kwargs", "return_value")
        return list(lean.select_for_update(skip_locked=self.is_bulk))

    def locked_leases(self) -> tuple[list[Lease], frozenset[UUID]]:
        """Lock the running leases by id. Also return the tasks of which others have locked some.

        A bulk verb skips a task if another session has locked one of its leases. That session may
        have locked a later lease first, because a batch is recorded in several steps.
        """
        if not self.ids:
            return [], frozenset()
        take_write_lock(self.connection)
        leases = Lease.objects.using(self.connection.alias).filter(
            task_id__in=self.ids, status=LeaseStatus.RUNNING
        )
        lean = leases.order_by("id").only("id", "task", "stop_requested_at", "stop_requested_by")
        running = list(lean.select_for_update(skip_locked=self.is_bulk))
        if not self.is_bulk:
            return running, frozenset()
        rest = leases.exclude(id__in=[lease.id for lease in running])
        missed = frozenset(rest.values_list("task_id", flat=True))
        return [lease for lease in running if lease.task_id not in missed], missed

    def audit(self, verb: str, acts: Iterable[Act]) -> None:
        """Write an entry for each task to which the verb was applied."""
        audit(self.connection, "task", verb, acts, person=self.person)


def require_seen(row: Any, seen: Seen, subject: str) -> None:
    """Raise `ChangedMeanwhile` unless the locked row is as the caller saw it."""
    if isinstance(seen, Mapping):
        changed = [name for name, value in seen.items() if getattr(row, name) != value]
        if changed:
            raise ChangedMeanwhile(_(
                "{subject} has changed since you saw it: {changed}.",
                subject=subject, changed=changed[0],
            ))  # fmt: skip
    elif seen is not None and not seen(row):
        raise ChangedMeanwhile(_("{subject} has changed since you saw it.", subject=subject))


def status_of(connection: BaseDatabaseWrapper, task_id: UUID) -> str:
    """Return the current status of a task. Raises `TaskDoesNotExist`."""
    tasks = Task.objects.using(connection.alias).filter(id=task_id)
    status = tasks.values_list("status", flat=True).first()
    if status is None:
        raise TaskDoesNotExist(_("There is no task {task_id}.", task_id=task_id))
    return str(status)


def task_of_step(connection: BaseDatabaseWrapper, task_id: UUID) -> Task | None:
    """Return a task that belongs to a step of a workflow; None for other tasks."""
    tasks = Task.objects.using(connection.alias).filter(id=task_id, step__isnull=False)
    return tasks.first()
