"""The page of one task: its state, history and actions."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from taskqueue.admin.operations.starting import TaskBulk
from taskqueue.admin.reports import LOOKING, live_report
from taskqueue.admin.tasks.acts import BUTTONS, buttons, edits
from taskqueue.admin.tasks.enqueueing import TaskEnqueueing
from taskqueue.admin.tasks.facts import details, folded_json, kin
from taskqueue.admin.tasks.history import bar, history_of, shown_events, shown_history
from taskqueue.admin.tasks.lists import TaskList
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.core.uuid7 import uuid7
from taskqueue.display import moment
from taskqueue.engine.connections import database_alias
from taskqueue.models import Task
from taskqueue.models.parts import DatabaseClock
from taskqueue.monitoring.history import events_of, stretches_of
from taskqueue.monitoring.read_models.task import task_details
from taskqueue.monitoring.why import Reason, why


class TaskAdmin(TaskBulk, TaskList, TaskEnqueueing):
    """Tasks: the list, the page of one, and what people may do to them."""

    change_form_template = "admin/taskqueue/task/change_form.html"
    routes = (
        ("<uuid:object_id>/act/", "act"),
        ("<uuid:object_id>/edit/<slug:what>/", "edit"),
        ("export/", "export"),
    )
    live_template = "admin/taskqueue/task/live.html"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the page, or only the part of it that is refreshed."""
        if not self.has_view_permission(request) or request.method not in LOOKING:
            raise PermissionDenied
        task = _whole(object_id)
        if task is None:
            return self.missing(request)
        context = self._page(request, task)
        templates = (self.change_form_template, self.live_template)
        return live_report(self, request, templates, task.name, **context)

    def _page(self, request: HttpRequest, task: Any) -> dict[str, Any]:
        """Return the context of the page, from one query for each kind of row."""
        history = history_of(request, task.pk)
        now, user = _steady(task), request.user
        leases, audits = history.leases or [], history.audits or []
        shown = task_details(task, user)
        call = {"args": shown.args, "kwargs": shown.kwargs}
        has_result = task.status == TaskStatus.SUCCEEDED
        return {
            "task": task,
            "original": task,
            "buttons": buttons(task, user),
            "edits": edits(task, user),
            "reasons": [sentence(reason) for reason in why(task)],
            "steps": shown_events(events_of(task, leases, audits, now)),
            "bar": bar(stretches_of(task, leases, audits, now)),
            "kin": kin(task, self.links, history.retries, audits),
            "details": details(shown),
            "arguments": None if shown.args is None else folded_json(call),
            "result": folded_json(shown.return_value) if has_result else None,
            "is_live": task.status not in FINISHED,
            "once": uuid7(),
            "may_act": any(verb.is_for(user) for verb in BUTTONS.values()),
            **shown_history(request, history, now),
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


def sentence(reason: Reason) -> SafeString:
    """Return the reason as a sentence, in the language of the page."""
    return format_html(gettext(reason.template), **reason.values(_shown))


def _shown(value: Any) -> Any:
    return moment(value) if isinstance(value, datetime) else value
