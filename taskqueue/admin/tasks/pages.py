"""The page of one task: its state, details, history, related tasks and actions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import chain
from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from taskqueue.admin.links import Links, kept_tasks
from taskqueue.admin.operations.starting import TaskBulk
from taskqueue.admin.reports import LOOKING, live_report
from taskqueue.admin.signals import SignalAdmin
from taskqueue.admin.tasks.acts import BUTTONS, buttons, edits
from taskqueue.admin.tasks.differences import differences
from taskqueue.admin.tasks.enqueueing import TaskEnqueueing
from taskqueue.admin.tasks.formatting import folded_json, formatted
from taskqueue.admin.tasks.history import bar, history_of, shown_events, shown_history
from taskqueue.admin.tasks.lists import TaskList
from taskqueue.admin.tasks.logs import TaskLogs
from taskqueue.admin.tasks.suggestions import TaskSuggestions
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.declarations.redaction import REDACTED
from taskqueue.display import badge, moment
from taskqueue.engine.connections import database_alias
from taskqueue.engine.result_parts import parts_of
from taskqueue.models import Audit, Step, Task
from taskqueue.models.parts import DatabaseClock
from taskqueue.monitoring.durations import short_duration
from taskqueue.monitoring.history import events_of, stretches_of
from taskqueue.monitoring.read_models.base import fields_of
from taskqueue.monitoring.read_models.task import TaskDetails, task_details
from taskqueue.monitoring.why import Reason, why
from taskqueue.reason_words import sentence_of

# The most parts of a result that the page shows.
MOST_PARTS = 20


class TaskAdmin(SignalAdmin, TaskBulk, TaskList, TaskSuggestions, TaskLogs, TaskEnqueueing):
    """Tasks: the list, the page of a task, and its buttons and forms."""

    change_form_template = "admin/taskqueue/task/change_form.html"
    routes = (
        ("<uuid:object_id>/act/", "act"),
        ("<uuid:object_id>/edit/<slug:what>/", "edit"),
        ("<uuid:object_id>/stream/", "stream"),
        ("export/", "export"),
        ("suggest/", "suggest"),
        ("searches/save/", "save"),
        ("searches/<int:search_id>/", "search"),
        ("<uuid:object_id>/log/", "log"),
    )
    live_template = "admin/taskqueue/task/live.html"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the page, or only its refreshed part."""
        if not self.has_view_permission(request) or request.method not in LOOKING:
            raise PermissionDenied
        task = _whole(object_id)
        if task is None:
            return self.missing(request)
        context = self._page(request, task)
        context["stream_url"] = self.stream_url(request, task.pk)
        templates = (self.change_form_template, self.live_template)
        return live_report(self, request, templates, task.name, **context)

    def events_of(self, object_id: UUID | None) -> EventFilter:
        return EventFilter.of("task.*", task=object_id)

    def _page(self, request: HttpRequest, task: Any) -> dict[str, Any]:
        """Return the context of the page, from one query for each kind of row."""
        history = history_of(request, task.pk)
        now, user = _steady(task), request.user
        leases, audits = history.leases or [], history.audits or []
        shown = task_details(task, user)
        call = {"args": shown.args, "kwargs": shown.kwargs}
        values = [*(shown.args or ()), *(shown.kwargs or {}).values()]
        has_result = task.status == TaskStatus.SUCCEEDED
        return {
            "task": task,
            "original": task,
            "buttons": buttons(task, user),
            "edits": edits(task, user),
            "reasons": [sentence(reason) for reason in why(task)],
            "steps": shown_events(events_of(task, leases, audits, now)),
            "bar": bar(stretches_of(task, leases, audits, now)),
            "of_step": step_of(task),
            "kin": kin(task, self.links, history.retries, audits),
            "details": details(shown),
            "arguments": None if shown.args is None else formatted(task.name, "arguments", call),
            "redacted": REDACTED if REDACTED in values else "",
            "differences": differences(task, user),
            "result": formatted(task.name, "result", shown.return_value) if has_result else None,
            "parts": shown_parts_of(task),
            "is_live": task.status not in FINISHED,
            "may_act": any(verb.is_for(user) for verb in BUTTONS.values()),
            **shown_history(request, history, task, now),
        }


def shown_parts_of(task: Any) -> list[SafeString]:
    """Return the newest parts of its result from the latest attempt."""
    newest = parts_of(task.pk, task.attempt).order_by("-place")[:MOST_PARTS]
    return [formatted(task.name, "part", part.value) for part in newest] if task.attempt else []


def _whole(object_id: str) -> Any:
    """Return the row with all its columns and the database's time; None if there is none."""
    try:
        task_id = UUID(object_id)
    except ValueError:
        return None
    rows = Task.objects.using(database_alias()).annotate(now=DatabaseClock())
    return rows.filter(pk=task_id).first()


def step_of(task: Any) -> Step | None:
    """Return the step of a workflow that the task belongs to."""
    if task.step_id is None:
        return None
    steps = Step.objects.using(database_alias()).filter(id=task.step_id)
    return steps.only("name", "workflow_id").first()


def _steady(task: Any) -> datetime:
    """Return the database's time, rounded, so that a page with ages stays the same for a while."""
    now: datetime = task.now
    step = 1 if task.status == TaskStatus.RUNNING else 10
    return now - timedelta(seconds=now.second % step, microseconds=now.microsecond)


def sentence(reason: Reason) -> SafeString:
    """Return the reason as a sentence, in the language of the page."""
    return sentence_of(reason, shown_value)


def shown_value(value: Any) -> Any:
    """Show a value of a sentence."""
    return moment(value) if isinstance(value, datetime) else value


def details(task: TaskDetails) -> list[tuple[str, object]]:
    """Return the fields that have a label, without empty and redundant ones."""
    return [
        (str(field.metadata["label"]), value)
        for name, field in fields_of(TaskDetails).items()
        if field.metadata.get("label") and not _is_left_out(task, name)
        if (value := _value(task, name)) not in ("", None, {}, [])
    ]


def _is_left_out(task: TaskDetails, name: str) -> bool:
    """Return whether the field is redundant, such as details of a unique key that it lacks."""
    if name == "unique_scope":
        return task.unique_scope == task.name
    return name in ("unique_for", "holds_unique_key") and not task.unique_key


def _value(task: TaskDetails, name: str) -> object:
    match getattr(task, name):
        case count if name == "crashes":
            return _("%(count)s of %(most)s") % {"count": count, "most": task.max_crashes}
        case str(address) if name == "trace_url":
            return format_html('<a href="{0}">{0}</a>', address)
        case bool(value):
            return _("yes") if value else _("no")
        case datetime() as value:
            return moment(value)
        case timedelta() as value:
            return short_duration(value.total_seconds())
        case dict(value) if value:
            return folded_json(value)
        case list(value):
            return ", ".join(map(str, value))
        case value:
            return value


def kin(
    task: Task, links: Links, retries: Sequence[Task], audits: Sequence[Audit]
) -> dict[str, list[SafeString]]:
    """Return links to the tasks from which it was made and that were made from it, by label."""
    copies: dict[str, list[UUID | None]] = {"of": [], "as": []}
    for entry in audits:
        if entry.verb == "duplicate":
            how, _space, task_id = entry.detail.partition(" ")
            with suppress(KeyError, ValueError):
                copies[how].append(UUID(task_id))
    ids = {
        _("Retry of"): [task.retry_of_id],
        _("Duplicate of"): copies["of"],
        _("Duplicates"): copies["as"],
    }
    kept = kept_tasks(chain.from_iterable(ids.values()))
    return {
        **{
            label: [links.to_task(each, is_kept=each in kept) for each in those if each]
            for label, those in ids.items()
        },
        _("Retried as"): [
            format_html("{} {}", links.to_row(Task, retry.pk, retry.pk), badge(retry.status))
            for retry in retries
        ],
    }
