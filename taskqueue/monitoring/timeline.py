"""The timeline of a task, for the admin, the API and the command line.

It is derived from existing rows: nothing is written for it, and it is complete for tasks that ended
before anybody looked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext_lazy

from taskqueue.access.permissions import VIEW_AUDITS, VIEW_LEASES, VIEW_WORKFLOWS
from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.models import Audit, Lease, Step, Task
from taskqueue.monitoring.history import NOW, Event, What, events_of
from taskqueue.monitoring.read_models.base import Viewer, about
from taskqueue.monitoring.reading import now

# The most attempts and audit entries of a timeline; the latest are shown.
MOST_ATTEMPTS, MOST_ENTRIES = 100, 100
KINDS = [kind.value for kind in What]

# By the kind of the event, and the status with which it ended.
TITLES: dict[tuple[What, str], Any] = {
    (What.ENQUEUED, ""): gettext_lazy("Enqueued"),
    (What.SCHEDULED, ""): gettext_lazy("Run of a schedule"),
    (What.STEP, ""): gettext_lazy("Step of a workflow"),
    (What.READY, ""): gettext_lazy("Ready"),
    (What.ATTEMPT_STARTED, ""): gettext_lazy("Attempt %(number)s started, after waiting"),
    (What.STOP_REQUESTED, ""): gettext_lazy("Asked to stop"),
    (What.STOP_SEEN, ""): gettext_lazy("The task received the stop request"),
    (What.WEDGED, ""): gettext_lazy("Seems wedged: no sign of progress"),
    (What.PROGRESSED, ""): gettext_lazy("Last progress of attempt %(number)s"),
    (What.RUNNING, ""): gettext_lazy("Running"),
    (What.WAITING, ""): gettext_lazy("Waiting"),
    (What.ATTEMPT_ENDED, LeaseStatus.SUCCEEDED): gettext_lazy("Attempt %(number)s succeeded"),
    (What.ATTEMPT_ENDED, LeaseStatus.FAILED): gettext_lazy("Attempt %(number)s failed"),
    (What.ATTEMPT_ENDED, LeaseStatus.LOST): gettext_lazy("Attempt %(number)s was lost"),
    (What.ATTEMPT_ENDED, LeaseStatus.STOPPED): gettext_lazy("Attempt %(number)s was stopped"),
    (What.ATTEMPT_ENDED, LeaseStatus.RETURNED): gettext_lazy("Attempt %(number)s was returned"),
    (What.ENDED, TaskStatus.SUCCEEDED): gettext_lazy("Succeeded after a total of"),
    (What.ENDED, TaskStatus.FAILED): gettext_lazy("Failed after a total of"),
    (What.ENDED, TaskStatus.CANCELLED): gettext_lazy("Cancelled after a total of"),
}
ACTIONS: dict[str, Any] = {
    **{verb.name: verb.past for verb in TASK_VERBS.values()},
    "enqueue": gettext_lazy("Enqueued manually"),
}


def title_of(event: Event) -> str:
    """Return the title of an event, in the current language."""
    if event.what is What.ACTION:
        return str(ACTIONS.get(event.verb, event.verb))
    return str(TITLES[event.what, event.status]) % {"number": event.attempt}


@dataclass(frozen=True, kw_only=True)
class TimelineEvent:
    """Something that happened to a task, or that is happening now."""

    at: datetime = about(
        "When it happened. For the last event of an unfinished task: when its present state began."
    )
    kind: str = about(choices=KINDS)
    title: str = about("The kind in words.")
    status: str = about("The status of the attempt or task that ended; else empty.")
    verb: str = about("The verb of an action by hand; else empty.")
    attempt: int | None = about("The number of the attempt.")
    took_seconds: float | None = about("The wait, the run or the whole that ended with it.")
    who: str = about("The worker, or the person.")
    error_class: str
    detail: str = about("The error, the progress, the reason, or the name of a schedule or step.")


def timeline_of(task: Task, viewer: Viewer) -> list[TimelineEvent]:
    """Return what happened to the task, oldest first, by at most four queries.

    Attempts, audit entries and the step of a workflow are left out if the viewer may not see them.
    """
    alias = database_alias()
    leases: list[Lease] = []
    audits: list[Audit] = []
    if viewer.has_perm(VIEW_LEASES):
        attempts = Lease.objects.using(alias).filter(task_id=task.id)
        lean = attempts.defer("traceback", "return_value").order_by("-attempt")
        leases = list(lean[:MOST_ATTEMPTS])[::-1]
    if viewer.has_perm(VIEW_AUDITS):
        entries = Audit.objects.using(alias).filter(noun="task", subject=str(task.id))
        audits = list(entries.order_by("-id")[:MOST_ENTRIES])[::-1]
    step = ""
    if task.step_id is not None and viewer.has_perm(VIEW_WORKFLOWS):
        steps = Step.objects.using(alias).filter(id=task.step_id)
        step = steps.values_list("name", flat=True).first() or ""
    return list(_shown(events_of(task, leases, audits, now()), step))


def _shown(events: list[Event], step: str) -> Iterator[TimelineEvent]:
    for event in events:
        if event.what is What.STEP and not step:
            continue
        # A current event has the time of its beginning, so that two readings give the same.
        goes_on = event.what in NOW
        since = event.at - timedelta(seconds=event.seconds or 0) if goes_on else event.at
        yield TimelineEvent(
            at=since,
            kind=event.what.value,
            title=title_of(event),
            status=event.status,
            verb=event.verb,
            attempt=event.attempt or None,
            took_seconds=None if goes_on or event.seconds is None else round(event.seconds, 3),
            who=event.who,
            error_class=event.error_class,
            detail=step if event.what is What.STEP else event.detail,
        )
