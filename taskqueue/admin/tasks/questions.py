"""The confirmations before a task is deleted, or the attempt of a lost worker is ended."""

from __future__ import annotations

from django.utils.translation import gettext as _

from taskqueue.admin.confirming import Question, subject_of
from taskqueue.admin.links import Links
from taskqueue.engine.control.verb import Verb
from taskqueue.models import Task


def about_deleting(links: Links, task: Task) -> Question:
    """Ask whether to delete the task."""
    told = _(
        "The task is deleted with its attempts and log lines. Only the audit keeps a record of it. "
        "This cannot be undone."
    )
    return Question(
        title=_("Delete task"),
        crumb=_("Delete"),
        subject=task.name,
        about=[subject_of(task.status, task.name, task.pk), told],
        url=links.url("task_delete", task.pk),
        hidden=[("post", "yes")],
        button=_("Delete task"),
        back=links.url("task_change", task.pk),
    )


def about_lost(links: Links, verb: Verb, task: Task) -> Question:
    """Ask whether to end the attempt, although its body may still be running."""
    told = _(
        "The worker of this task is lost. This action ends its attempt now. If the worker's host "
        "is only cut off from the database, the task's code may keep running there until the "
        "worker reaches the database again."
    )
    becomes = _("The task will be cancelled.")
    if verb.name == "retry":
        becomes = _("The task will be ready for another worker.")
    return Question(
        title=str(verb.label),
        subject=task.name,
        about=[subject_of(task.status, task.name, task.pk), told, becomes],
        url=links.url("task_act", task.pk),
        hidden=[("verb", verb.name), ("confirmed", "lost")],
        button=_("End attempt"),
        back=links.url("task_change", task.pk),
    )
