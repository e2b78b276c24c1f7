"""The buttons and the forms of a task, from the table of verbs."""

from __future__ import annotations

from typing import Any

from taskqueue.admin.tasks.forms import FORMS
from taskqueue.core.states import TaskStatus
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.models import Task

BUTTONS = {verb.name: verb for verb in TASK_VERBS.values() if verb.name not in FORMS}
"""Verbs that need nothing but a reason; the others have a form."""


def is_offered(verb: TaskVerb, task: Task) -> bool:
    """Whether the task shows the button; what runs is stopped, not cancelled."""
    is_running = task.status == TaskStatus.RUNNING
    return verb.fits(task) and not (is_running and verb.name == "cancel")


def buttons(task: Task, user: Any) -> list[TaskVerb]:
    """Return the verbs that this user may do to the task; deleting has a page of its own."""
    verbs = [verb for verb in BUTTONS.values() if verb.is_for_task(user, task)]
    return [verb for verb in verbs if is_offered(verb, task)]


def edits(task: Task, user: Any) -> list[TaskVerb]:
    """Return the verbs whose forms this user may open for the task."""
    return [verb for verb in map(TASK_VERBS.__getitem__, FORMS) if verb.is_for_task(user, task)]
