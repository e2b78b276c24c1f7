"""The columns of the list of tasks."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.core.states import FINISHED, WAITING, TaskStatus
from taskqueue.display import EMPTY, badge, breakable, short_duration, short_moment
from taskqueue.models import Task
from taskqueue.monitoring.searching import search_text

SHORT = 8
"""Digits of an id in the list: the last ones, since the first tell the time."""


class TaskColumns(ReadOnlyAdmin):
    """One method for each column, so that projects can choose columns by name."""

    @admin.display(description=gettext_lazy("selected"))
    def action_checkbox(self, obj: Any) -> SafeString:
        """The same as Django's own, which renders a template for each row."""
        label = _("Select this task for an action: %(task)s") % {"task": obj}
        return format_html(
            '<input type="checkbox" name="{}" value="{}" class="action-select" aria-label="{}">',
            ACTION_CHECKBOX_NAME,
            obj.pk,
            label,
        )

    @admin.display(description=gettext_lazy("name"))
    def shown_name(self, task: Task) -> SafeString:
        """Show the name; a long one breaks at its dots."""
        return breakable(task.name)

    @admin.display(description=gettext_lazy("id"))
    def short_id(self, task: Task) -> SafeString:
        text = str(task.pk)
        return format_html('<code title="{}">…{}</code>', text, text[-SHORT:])

    @admin.display(description=gettext_lazy("status"))
    def shown_status(self, task: Task) -> SafeString:
        return badge(task.status)

    @admin.display(description=gettext_lazy("queue"))
    def shown_queue(self, task: Task) -> SafeString:
        text = urlencode({"q": search_text(queue=task.queue_name)})
        return format_html('<a href="?{}">{}</a>', text, task.queue_name)

    @admin.display(description=gettext_lazy("attempt"))
    def shown_attempt(self, task: Task) -> str:
        return str(task.attempt) if task.attempt else str(EMPTY)

    @admin.display(description=gettext_lazy("enqueued"))
    def shown_enqueued(self, task: Any) -> SafeString:
        return _short(task.enqueued_at)

    @admin.display(description=gettext_lazy("due or finished"))
    def shown_moment(self, task: Any) -> SafeString:
        """Show when the task is due, started or finished."""
        if task.status in FINISHED:
            word, at = _("finished"), task.finished_at
        elif task.status in WAITING:
            word, at = _("due"), task.run_after
        elif task.status == TaskStatus.RUNNING and task.started_at is not None:
            word, at = _("started"), task.started_at
        else:
            return EMPTY
        return format_html(
            '<span class="taskqueue-when"><span class="taskqueue-quiet">{}</span> {}</span>',
            word,
            _short(at),
        )

    @admin.display(description=gettext_lazy("last run"))
    def shown_duration(self, task: Any) -> str:
        """Show how long the last attempt ran, or has been running."""
        begun, ended = getattr(task, "last_run", (None, None))
        if begun is None:
            return str(EMPTY)
        return short_duration(max(0.0, ((ended or task.now) - begun).total_seconds()))

    @admin.display(description=gettext_lazy("error"))
    def shown_error(self, task: Task) -> SafeString:
        if not task.error_class:
            return EMPTY
        name = task.error_class.rpartition(".")[2]
        return format_html('<span title="{}">{}</span>', task.error_class, name)


def _short(at: datetime) -> SafeString:
    return short_moment(at, "%Y-%m-%d %H:%M", "when")
