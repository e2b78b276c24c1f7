"""Delete: what has finished goes, with its attempts and its log lines."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.abandoned import is_held_by_lost
from taskqueue.engine.control.audit import Act, Person, audit, person
from taskqueue.engine.control.locking import ALLOWED, Statuses, TaskId, id_of, locked, status_of
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Task


def delete(task: TaskId, *, by: object = "", reason: str = "") -> None:
    """Delete a finished task, its attempts and its log lines; only the audit tells of it then.

    A unique key that it holds is free from then on. Raises `TaskDoesNotExist`, and
    `TransitionRefused` for a task that is not finished.
    """
    task_id = id_of(task)
    connection = project_connection()
    with atomic(using=connection.alias):
        if not delete_each(connection, [task_id], person=person(by, reason)):
            status = status_of(connection, task_id)
            remedy = "cancel() ends it."
            if is_held_by_lost(connection, task_id):
                remedy = "Its worker is lost: cancel() or request_stop() ends it at once."
            raise TransitionRefused(
                f"Task {task_id} is {status}; only a finished one is deleted. {remedy}"
            )


def delete_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    *,
    statuses: Statuses = ALLOWED["delete"],
    person: Person,
    skip_locked: bool = False,
) -> list[UUID]:
    """Delete those of the tasks that have finished.

    What a schedule says of its run stays, as it does when the task is pruned.
    """
    tasks = locked(connection, ids, statuses, skip_locked=skip_locked)
    if not tasks:
        return []
    found = [task.id for task in tasks]
    # Cascades to leases and log lines, both found by an index. Only ids are read for it: arguments
    # may be large.
    Task.objects.using(connection.alias).filter(id__in=found).only("id").delete()
    acts = [Act(str(task.id), task.status, f"{task.name} on {task.queue_name}") for task in tasks]
    audit(connection, "task", "delete", acts, person=person)
    return found
