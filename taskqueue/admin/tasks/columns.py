"""The columns of the list of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext as _

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.columns import cell
from taskqueue.core.states import FINISHED, WAITING, TaskStatus
from taskqueue.display import EMPTY, badge, breakable, last_digits, local_time, short_moment
from taskqueue.monitoring.durations import short_duration
from taskqueue.monitoring.searching.search_tokens import search_text


def _name(task: Any) -> SafeString:
    """Show the name, and a short form of the arguments."""
    preview = getattr(task, "preview", None)
    if preview is None:
        return breakable(task.name)
    quiet = '{}<span class="taskqueue-preview"> {}</span>'
    return format_html(quiet, breakable(task.name), preview)


def _queue(name: str) -> SafeString:
    return format_html('<a href="?{}">{}</a>', urlencode({"q": search_text(queue=name)}), name)


def _short(at: datetime) -> SafeString:
    return short_moment(at, "%Y-%m-%d %H:%M", "when")


def _moment(task: Any) -> SafeString:
    """Show when the task is due, started or finished."""
    if task.status in FINISHED:
        word, at = _("finished"), task.finished_at
    elif task.status in WAITING:
        word, at = _("due"), task.run_after
    elif task.status == TaskStatus.RUNNING and task.started_at is not None:
        word, at = _("started"), task.started_at
    else:
        return EMPTY
    quiet = '<span class="taskqueue-when"><span class="taskqueue-quiet">{}</span> {}</span>'
    return format_html(quiet, word, _short(at))


def _duration(task: Any) -> str:
    """Show how long the last attempt ran, or has been running."""
    begun, ended = getattr(task, "last_run", (None, None))
    if begun is None:
        return EMPTY
    return short_duration(max(0.0, ((ended or task.now) - begun).total_seconds()))


# Short texts; the tooltip has the full sentence.
WAITS_FOR: Mapping[str, Any] = {
    "blocked": gettext_lazy("other tasks first"),
    "unknown": gettext_lazy("unknown to workers"),
    "all_paused": gettext_lazy("everything is paused"),
    "definition_paused": gettext_lazy("definition is paused"),
    "queue_paused": gettext_lazy("queue is paused"),
    "unserved": gettext_lazy("no worker"),
    "workers_absent": gettext_lazy("no such worker"),
    "not_taking": gettext_lazy("workers are quiet"),
    "worker_trouble": gettext_lazy("worker has a problem"),
}


def _reason(task: Any) -> SafeString:
    """Show the class of the error, or why the task waits."""
    if task.error_class:
        return _error(task.error_class)
    reason = getattr(task, "waits_for", None)
    if reason is None:
        return EMPTY
    sentence = gettext(reason.template).format(**reason.values(_plain))
    return format_html(
        '<span class="taskqueue-quiet" title="{}">{}</span>',
        sentence,
        WAITS_FOR.get(reason.code, sentence),
    )


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return f"{local_time(value):%Y-%m-%d %H:%M:%S}"
    return value


def _error(error_class: str) -> SafeString:
    return format_html('<span title="{}">{}</span>', error_class, error_class.rpartition(".")[2])


class TaskColumns(ReadOnlyAdmin):
    """One attribute for each column, so that projects can choose columns by name."""

    @admin.display(description=gettext_lazy("selected"))
    def action_checkbox(self, obj: Any) -> SafeString:
        """Return the same as Django's own, which renders a template for each row."""
        return format_html(
            '<input type="checkbox" name="{}" value="{}" class="action-select" aria-label="{}">',
            ACTION_CHECKBOX_NAME,
            obj.pk,
            _("Select this task for an action: %(task)s") % {"task": obj},
        )

    shown_name = cell(gettext_lazy("name"), _name)
    short_id = cell(gettext_lazy("id"), last_digits, "pk")
    shown_status = cell(gettext_lazy("status"), badge, "status")
    shown_queue = cell(gettext_lazy("queue"), _queue, "queue_name")
    shown_attempt = cell(gettext_lazy("attempt"), lambda attempt: attempt or EMPTY, "attempt")
    shown_enqueued = cell(gettext_lazy("enqueued"), _short, "enqueued_at")
    shown_moment = cell(gettext_lazy("due or finished"), _moment)
    shown_duration = cell(gettext_lazy("last run"), _duration)
    shown_error = cell(gettext_lazy("error or reason"), _reason)
