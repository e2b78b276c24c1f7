"""Remedies of a notice: links to its subject, and buttons that solve it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from taskqueue.access.permissions import VIEW_FIGURES, VIEW_WORKERS, VIEW_WORKFLOWS
from taskqueue.admin.dashboard.sentences import sentence
from taskqueue.admin.links import Links
from taskqueue.core.states import TaskStatus
from taskqueue.engine.control.queue_verbs import ALL_VERBS, DEFINITION_VERBS, QUEUE_VERBS
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.control.worker_verbs import WORKER_VERBS
from taskqueue.engine.schedules.schedule_verbs import SCHEDULE_VERBS
from taskqueue.models.worker import WorkerRequest
from taskqueue.monitoring.notice import error_query
from taskqueue.monitoring.notices import Notice, Situation
from taskqueue.monitoring.searching.search_tokens import search_text

FAILED, READY = TaskStatus.FAILED.value, TaskStatus.READY.value
OF_WAITING = frozenset({
    "unserved_queue", "paused_with_waiting", "stalled", "late_queue", "deep_queue",
    "growing_backlog", "absent_workers", "too_few_workers", "absent_tags",
})  # fmt: skip


@dataclass(frozen=True)
class Look:
    """A link to the subject of a notice."""

    text: str
    url: str


@dataclass(frozen=True)
class Act:
    """A button: one verb on one row."""

    verb: Verb
    url: str
    name: str
    # The value that it posts, if that is not the verb's name.
    value: str = ""


@dataclass(frozen=True)
class ShownNotice:
    """A notice as the dashboard shows it to one user."""

    notice: Notice
    sentence: SafeString
    looks: list[Look] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)


def shown_notices(
    request: HttpRequest, links: Links, situation: Situation, found: Sequence[Notice]
) -> list[ShownNotice]:
    """Return the notices with what this user can do about them."""
    remedies = Remedies(request.user, links, situation)
    return [
        ShownNotice(
            notice, sentence(notice, links), list(remedies.looks(notice)),
            list(remedies.acts(notice)),
        )
        for notice in found
    ]  # fmt: skip


class Remedies:
    """The links and buttons of notices, for one user."""

    def __init__(self, user: Any, links: Links, situation: Situation) -> None:
        self._user = user
        self._links = links
        self._situation = situation
        # Attempts that nobody has asked to stop yet.
        self._workers = {
            worker.name: worker.id
            for worker in situation.workers
            if worker.request not in (WorkerRequest.STOP, WorkerRequest.KILL)
        }
        self._schedules = {row.name: row.id for row in situation.standing.resting}

    def looks(self, notice: Notice) -> Iterator[Look]:
        """Yield the links: to the filtered tasks, and to a page that asks about all of them."""
        query = _query(notice)
        if query:
            yield Look(_("Tasks"), f"{self._links.url('task_changelist')}?{_q(query)}")
        if notice.code == "failure_jump" and self._user.has_perm(VIEW_FIGURES):
            url = self._links.url("performance_changelist")
            text = urlencode({"name": notice.subject, "span": "day"})
            yield Look(_("Performance"), f"{url}?{text}")
        if notice.code == "doctor" and self._user.has_perm(VIEW_WORKERS):
            yield Look(_("Doctor"), self._links.url("dashboard_doctor"))
        if notice.workflow:
            # A retry of all refuses tasks of workflows.
            yield from self._workflows(notice)
            if not notice.has_others:
                return
        verbs = {"failing": "retry", "failure_jump": "retry", "new_error": "retry",
                 "parked": "cancel"}  # fmt: skip
        verb = TASK_VERBS.get(verbs.get(notice.code, ""))
        if verb is not None and verb.is_for(self._user):
            words = {"retry": _("Retry all…"), "cancel": _("Cancel all…")}
            text = words[verb.name]
            if notice.in_workflows and notice.count and not notice.is_capped:
                some, all_of_them = notice.count - notice.in_workflows, notice.count
                text = _("Retry %(some)s of %(all)s…") % {"some": some, "all": all_of_them}
            url = self._links.url("operation_start")
            yield Look(text, f"{url}?{urlencode({'verb': verb.name, 'q': query})}")

    def _workflows(self, notice: Notice) -> Iterator[Look]:
        if not self._user.has_perm(VIEW_WORKFLOWS):
            return
        if notice.in_workflows == 1:
            yield Look(_("Workflow"), self._links.url("workflow_change", notice.workflow))
        else:
            yield Look(_("Failed workflows"), self._links.failed_workflows)

    def acts(self, notice: Notice) -> Iterator[Act]:
        """Yield the buttons, each for a verb that solves the notice's problem."""
        act = self._act(notice)
        if act is not None and act.verb.is_for(self._user):
            yield act

    def _act(self, notice: Notice) -> Act | None:
        links, subject = self._links, notice.subject
        if notice.code == "all_paused":
            return Act(ALL_VERBS["resume_all"], links.url("queue_pauses"), "")
        if notice.code == "definition_paused":
            url = f"{links.url('queue_pauses')}?{urlencode({'definition': subject})}"
            return Act(DEFINITION_VERBS["resume"], url, subject, "resume_definition")
        if notice.code == "paused_with_waiting":
            return Act(QUEUE_VERBS["resume"], links.url("queue_act", subject), subject)
        if notice.code == "schedule_paused_itself" and subject in self._schedules:
            url = links.url("schedule_act", self._schedules[subject])
            return Act(SCHEDULE_VERBS["resume"], url, subject)
        if notice.code in ("wedged", "long_run", "lost_holds") and not self._is_stopping(subject):
            return Act(TASK_VERBS["stop"], links.url("task_act", UUID(subject)), subject)
        if notice.code == "worker_trouble" and subject in self._workers:
            url = links.url("worker_act", self._workers[subject])
            return Act(WORKER_VERBS["stop"], url, subject)
        return None

    def _is_stopping(self, task_id: str) -> bool:
        """Return whether somebody has asked an attempt at the task to stop."""
        return any(
            attempt.is_stopping and str(attempt.task_id) == task_id
            for attempt in self._situation.running
        )


def _query(notice: Notice) -> str:
    """Return the search for a notice's tasks; empty if the notice names them itself."""
    subject = notice.subject
    if notice.code in OF_WAITING:
        return search_text(queue=subject, status=READY)
    if notice.code == "failing":
        return search_text(queue=subject, status=FAILED)
    if notice.code == "failure_jump":
        return search_text(name=subject, status=FAILED)
    if notice.code == "new_error":
        return error_query(subject, notice.detail)
    if notice.code == "parked":
        return search_text(name=subject, status=TaskStatus.SCHEDULED.value)
    if notice.code == "definition_paused":
        return search_text(name=subject, status=READY)
    return ""


def _q(query: str) -> str:
    return urlencode({"q": query})
