"""What can be done to one task by hand: the words of it, and when; `authority` says by whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from taskqueue import control
from taskqueue.access.authority import cancel_waiting, fits, may, may_on, retry
from taskqueue.core.states import PENDING, TaskStatus
from taskqueue.engine.control.locking import ALLOWED, ALLOWED_OF_ONE
from taskqueue.models import Task

Done = Any
"""What a verb gives back."""


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A button: its words, and what it calls."""

    name: str
    label: Any
    done: Any
    act: Callable[..., Done]
    statuses: frozenset[TaskStatus]
    hint: Any = ""
    is_grave: bool = False

    def is_for(self, user: Any) -> bool:
        """Whether this user may press it."""
        return may(user, self.name)

    def fits(self, task: Task) -> bool:
        """Whether it would not be refused now."""
        return task.status in self.statuses and fits(task, self.name)


RETRY = Verb(
    name="retry", label=_("Retry now"), act=retry,
    statuses=ALLOWED_OF_ONE["retry"], done=_("The task is ready to run again."),
    hint=_("Runs again with the same arguments; its failures are forgotten."),
)  # fmt: skip
RUN_NOW = Verb(
    name="run_now", label=_("Run now"), act=control.run_now,
    statuses=ALLOWED["run_now"], done=_("The task is due now."),
    hint=_("Does not wait for its time."),
)  # fmt: skip
CANCEL = Verb(
    name="cancel", label=_("Cancel"), act=cancel_waiting,
    statuses=PENDING, done=_("The task is cancelled."), is_grave=True,
    hint=_("Ends it before it runs."),
)  # fmt: skip
STOP_IT = Verb(
    name="stop", label=_("Stop"), act=control.request_stop,
    statuses=ALLOWED["stop"], done=_("The task was asked to stop."), is_grave=True,
    hint=_(
        "Asks the body first; one that does not listen is interrupted after a grace, and its "
        "process is killed after another. Both graces are settings."
    ),
)  # fmt: skip
DUPLICATE = Verb(
    name="duplicate", label=_("Duplicate"), act=control.duplicate,
    statuses=ALLOWED["duplicate"], done=_("This task is like the one that it was made from."),
    hint=_("Enqueues another one with the same arguments and options."),
)  # fmt: skip
DELETE = Verb(
    name="delete", label=_("Delete"), act=control.delete,
    statuses=ALLOWED["delete"], done=_("The task is deleted."), is_grave=True,
)  # fmt: skip
VERBS = {verb.name: verb for verb in (RETRY, RUN_NOW, STOP_IT, CANCEL, DUPLICATE, DELETE)}
"""By their names in addresses and forms; buttons stand in this order."""


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A form of its own: its words, and what it does."""

    name: str
    label: Any
    verb: str
    """As `authority` names it."""

    def is_for(self, user: Any) -> bool:
        """Whether this user may open it."""
        return may(user, self.verb)

    def fits(self, task: Task) -> bool:
        """Whether it would not be refused now."""
        return fits(task, self.verb)


EDITS = {
    edit.name: edit
    for edit in (
        Edit(name="retry", label=_("Retry with other arguments"), verb="retry_with"),
        Edit(name="reschedule", label=_("Reschedule"), verb="reschedule"),
        Edit(name="update", label=_("Change priority or queue"), verb="update"),
    )
}


def buttons(task: Task, user: Any) -> list[Verb]:
    """What this user may do to the task as it stands; deleting has a page of its own."""
    verbs = [verb for verb in VERBS.values() if may_on(task, verb.name, user)]
    return [verb for verb in verbs if verb.fits(task)]


def edits(task: Task, user: Any) -> list[Edit]:
    """The forms that this user may open for the task as it stands."""
    return [edit for edit in EDITS.values() if edit.fits(task) and edit.is_for(user)]
