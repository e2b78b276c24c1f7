"""The columns of the list of tasks."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.badges import badge
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.display import EMPTY, link_to_list, moment
from taskqueue.admin.durations import short_duration
from taskqueue.models import Task
from taskqueue.monitoring.searching import written
from taskqueue.states import FINISHED, WAITING, TaskStatus

SHORT = 8
"""Digits of an id in the list: the last ones, since the first tell the time."""


class TaskColumns(ReadOnlyAdmin):
    """Each is a method, so that a project can name those that it wants."""

    @admin.display(description=gettext_lazy("name"))
    def shown_name(self, task: Task) -> str:
        """Broken at its dots, where it is too long for a line."""
        return task.name

    @admin.display(description=gettext_lazy("id"))
    def short_id(self, task: Task) -> SafeString:
        text = str(task.pk)
        return format_html('<code title="{}">…{}</code>', text, text[-SHORT:])

    @admin.display(description=gettext_lazy("status"))
    def shown_status(self, task: Task) -> SafeString:
        return badge(task.status)

    @admin.display(description=gettext_lazy("queue"))
    def shown_queue(self, task: Task) -> SafeString:
        return link_to_list(Task, task.queue_name, q=written(queue=task.queue_name))

    @admin.display(description=gettext_lazy("attempt"))
    def shown_attempt(self, task: Task) -> str:
        return str(task.attempt) if task.attempt else str(EMPTY)

    @admin.display(description=gettext_lazy("enqueued"))
    def shown_enqueued(self, task: Task) -> SafeString:
        return moment(task.enqueued_at)

    @admin.display(description=gettext_lazy("due or ended"))
    def shown_moment(self, task: Task) -> SafeString:
        """What comes next, or what was last: in a word, and when."""
        if task.status in FINISHED:
            word, at = _("ended"), task.finished_at
        elif task.status in WAITING:
            word, at = _("due"), task.run_after
        elif task.status == TaskStatus.RUNNING and task.started_at is not None:
            word, at = _("started"), task.started_at
        else:
            return EMPTY
        return format_html('<span class="taskqueue-quiet">{}</span> {}', word, moment(at))

    @admin.display(description=gettext_lazy("duration"))
    def shown_duration(self, task: Any) -> str:
        """From its first start to its end, or until now."""
        if task.started_at is None:
            return str(EMPTY)
        if task.finished_at is None and task.status != TaskStatus.RUNNING:
            return str(EMPTY)
        end = task.finished_at or task.now
        return short_duration(max(0.0, (end - task.started_at).total_seconds()))

    @admin.display(description=gettext_lazy("error"))
    def shown_error(self, task: Task) -> SafeString:
        if not task.error_class:
            return EMPTY
        name = task.error_class.rpartition(".")[2]
        return format_html('<span title="{}">{}</span>', task.error_class, name)
