"""Saying, before an attempt of a lost worker is ended, that its body may still run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn
from uuid import UUID

from taskqueue.engine.connections import project_connection
from taskqueue.engine.control import TaskFilter, count_held_by_lost
from taskqueue.engine.lost import lost_attempts
from taskqueue.exceptions import TransitionRefused

MAY_RUN = (
    "The body may still run if the worker's host is only cut off, until the worker reaches the "
    "database again."
)


def held_by_lost(task_id: UUID) -> list[str]:
    """The lost workers that hold the task."""
    return [each.worker for each in lost_attempts(project_connection(), [task_id])]


def refuse_to_end(task_id: UUID, workers: Sequence[str]) -> NoReturn:
    """Raise `TransitionRefused`, with what confirms it."""
    raise TransitionRefused(
        f"Task {task_id} is held by a lost worker: {', '.join(map(repr, workers))}. {MAY_RUN} "
        "Nothing was done: say --yes to end the attempt at once."
    )


def warning_of_many(which: TaskFilter, verb: str) -> str:
    """The warning before a bulk action; empty where no lost worker holds a task."""
    number = count_held_by_lost(which, verb)
    if not number:
        return ""
    return f" {number} of them are held by lost workers, and their attempts end at once. {MAY_RUN}"
