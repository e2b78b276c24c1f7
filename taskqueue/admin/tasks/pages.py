"""The page of one task: its state, history and actions."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from taskqueue.admin.operations.actions import TaskBulk
from taskqueue.admin.reports import answer, fragment, is_refresh, report
from taskqueue.admin.tasks.arguments import folded_json, shown_arguments
from taskqueue.admin.tasks.editing import TaskEditing
from taskqueue.admin.tasks.enqueueing import TaskEnqueueing
from taskqueue.admin.tasks.facts import details, facts
from taskqueue.admin.tasks.history import History, history_of, progress_bar, shown_history
from taskqueue.admin.tasks.lists import TaskList
from taskqueue.admin.tasks.once import once_field
from taskqueue.admin.tasks.timeline import bar, shown_events
from taskqueue.admin.tasks.verbs import BUTTONS, buttons, edits
from taskqueue.core.states import FINISHED, LeaseStatus, TaskStatus
from taskqueue.display import badge, breakable, moment, preformatted
from taskqueue.engine.connections import database_alias
from taskqueue.models import Lease, Task
from taskqueue.models.clock import DatabaseClock
from taskqueue.monitoring.history import events_of, stretches_of
from taskqueue.monitoring.read_models.task import task_details
from taskqueue.monitoring.why import Reason, why


class TaskAdmin(TaskBulk, TaskList, TaskEditing, TaskEnqueueing):
    """Tasks: the list, the page of one, and what people may do to them."""

    change_form_template = "admin/taskqueue/task/change_form.html"
    routes = (
        ("<uuid:object_id>/act/", "act"),
        ("<uuid:object_id>/edit/<slug:what>/", "edit"),
        ("export/", "export"),
    )
    live_template = "admin/taskqueue/task/live.html"

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the page, or only the part of it that is refreshed."""
        if not self.has_view_permission(request) or request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        task = _whole(object_id)
        if task is None:
            return self.missing(request)
        context = self._page(request, task)
        live = fragment(request, self.live_template, context)
        if is_refresh(request):
            return answer(request, live)
        own = {**context, "live": live, **(extra_context or {})}
        return report(self, request, self.change_form_template, task.name, **own)

    def _page(self, request: HttpRequest, task: Any) -> dict[str, Any]:
        """Return the context of the page, from one query for each kind of row."""
        history = history_of(request, task.pk)
        now = _steady(task)
        leases, audits = history.leases or [], history.audits or []
        user = request.user
        shown = task_details(task, user)
        return {
            "task": task,
            "original": task,
            "badge": badge(task.status),
            "buttons": buttons(task, user),
            "edits": [
                (verb, self.links.url("task_edit", task.pk, verb.name))
                for verb in edits(task, user)
            ],
            "delete_url": self.links.url("task_delete", task.pk),
            "act_url": self.links.url("task_act", task.pk),
            "history_url": self.links.url("task_history", quote(task.pk)),
            "reasons": why_sentences(task),
            "stops": _stops(history),
            "progress": _progress(history),
            "steps": shown_events(events_of(task, leases, audits, now)),
            "bar": bar(stretches_of(task, leases, audits, now)),
            "facts": facts(task, user, self.links, history.retries, audits),
            "details": details(shown),
            "arguments": shown_arguments(shown),
            "result": folded_json(shown.return_value)
            if task.status == TaskStatus.SUCCEEDED
            else None,
            "error_class": breakable(task.error_class),
            "error": preformatted(task.error_message) if task.error_message else None,
            "is_live": task.status not in FINISHED,
            **once_field(),
            "may_act": any(verb.is_for(user) for verb in BUTTONS.values()),
            **shown_history(request, self.links, task, history, now),
        }


def _whole(object_id: str) -> Any:
    """Return the row with all its columns and the database's time; None if there is none."""
    try:
        task_id = UUID(object_id)
    except ValueError:
        return None
    rows = Task.objects.using(database_alias()).annotate(now=DatabaseClock())
    return rows.filter(pk=task_id).first()


def _steady(task: Any) -> datetime:
    """Return the database's time in steps: between them a page that shows ages stays the same."""
    now: datetime = task.now
    step = 1 if task.status == TaskStatus.RUNNING else 10
    return now - timedelta(seconds=now.second % step, microseconds=now.microsecond)


def _running(history: History) -> list[Lease]:
    return [lease for lease in history.leases or [] if lease.status == LeaseStatus.RUNNING]


def _stops(history: History) -> list[Lease]:
    """Return the running attempts that were asked to stop."""
    return [lease for lease in _running(history) if lease.stop_requested_at is not None]


def _progress(history: History) -> list[Any]:
    """Return the progress of the running attempts."""
    return [progress_bar(lease) for lease in _running(history) if lease.progress is not None]


def sentence(reason: Reason) -> SafeString:
    """Return the reason as a sentence, in the language of the page."""
    return format_html(gettext(reason.template), **reason.values(_shown))


def why_sentences(task: Any) -> list[SafeString]:
    """Return why the task waits, who runs it, or how it ended."""
    return [sentence(reason) for reason in why(task)]


def _shown(value: Any) -> Any:
    return moment(value) if isinstance(value, datetime) else value
