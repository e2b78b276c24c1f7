"""Saying, before an attempt of a lost worker is ended, that its body may still run."""

from __future__ import annotations

from uuid import UUID

from taskqueue.engine.connections import project_connection
from taskqueue.engine.control import TaskFilter, count_held_by_lost
from taskqueue.engine.control.abandoned import was_lost
from taskqueue.engine.lost import lost_attempts
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Task

MAY_RUN = (
    "The body may still run if the worker's host is only cut off, until the worker reaches the "
    "database again."
)


def refuse_unconfirmed(task_id: UUID) -> None:
    """Raise `TransitionRefused` for a task that a lost worker holds."""
    held = lost_attempts(project_connection(), [task_id])
    if held:
        names = ", ".join(repr(each.worker) for each in held)
        raise TransitionRefused(
            f"Task {task_id} is held by a lost worker: {names}. {MAY_RUN} Nothing was done: say "
            "--yes to end the attempt at once."
        )


def ended_lost(task_id: UUID) -> dict[str, bool]:
    """What is told of a task whose attempt was ended because its worker was lost."""
    connection = project_connection()
    task = Task.objects.using(connection.alias).filter(id=task_id).first()
    return {"worker_lost": True} if task is not None and was_lost(connection, task) else {}


def warning_of_many(which: TaskFilter, verb: str) -> str:
    """What is said before a verb is used on many tasks; nothing where no lost worker holds any."""
    number = count_held_by_lost(which, verb)
    if not number:
        return ""
    return f" {number} of them are held by lost workers, and their attempts end at once. {MAY_RUN}"
