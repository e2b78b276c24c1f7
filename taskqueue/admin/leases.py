"""Leases, each with one attempt of a task by a worker and its outcome, and log lines of tasks."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.base import OfTaskAdmin
from taskqueue.admin.columns import cell
from taskqueue.admin.filters import LeaseStatusFilter, WedgedFilter, WorkerFilter
from taskqueue.admin.gantt import GanttAdmin
from taskqueue.display import EMPTY, as_json, badge, breakable, compact, preformatted
from taskqueue.models import Lease, Worker
from taskqueue.monitoring.read_models.attempt import level_name
from taskqueue.monitoring.read_models.base import WITHOUT_ARGUMENTS, visible_checkpoint


def _progress(lease: Lease) -> str:
    if lease.progress is None:
        return EMPTY
    detail = "" if lease.progress_detail is None else compact(lease.progress_detail)
    return " ".join(filter(None, (f"{lease.progress:.0f} %", lease.progress_message, detail)))


class LeaseAdmin(GanttAdmin, OfTaskAdmin):
    """The list has one attempt in each row."""

    routes = (("gantt/", "gantt"),)
    columns = (
        "task_id", "worker_id", "attempt", "status", "claimed_at", "finished_at", "wedged_at",
        "error_class",
    )  # fmt: skip
    list_display = (
        "id", "short_task_link", "attempt", "shown_status", "worker_link",
        "claimed_at", "finished_at", "shown_class",
    )  # fmt: skip
    list_filter = (LeaseStatusFilter, WedgedFilter, WorkerFilter)
    lookups = ("status__exact", "task__id__exact", "worker__name__exact", "wedged")
    fieldsets = (
        (None, {"fields": (
            "id", "task_link", "attempt", "shown_status", "worker_link", "progress_text",
            "shown_checkpoint",
        )}),
        (_("Times"), {"fields": (
            "claimed_at", "started_at", "progressed_at", "checkpointed_at", "wedged_at",
            "expires_at", "finished_at",
        )}),
        (_("Error"), {"fields": ("error_class", "message", "shown_traceback")}),
        (_("Stop"), {"fields": (
            "stop_requested_at", "stop_requested_by", "stop_reason", "stop_seen_at",
        )}),
    )  # fmt: skip

    def heading(self, row: Lease) -> str:
        return gettext("Attempt %(number)s of %(task)s by %(worker)s") % {
            "number": row.attempt, "task": row.task.name, "worker": row.worker_id
        }  # fmt: skip

    @admin.display(description=_("status"))
    def shown_status(self, lease: Lease) -> SafeString:
        shown = badge(lease.status)
        if lease.wedged_at is None or lease.finished_at is not None:
            return shown
        return format_html("{} {}", shown, badge("trouble", gettext("seems wedged")))

    @admin.display(description=_("worker"))
    def worker_link(self, lease: Lease) -> SafeString:
        return self.links.to_list(Worker, lease.worker_id, q=lease.worker_id)

    @admin.display(description=_("checkpoint"))
    def shown_checkpoint(self, lease: Lease) -> SafeString:
        state = visible_checkpoint(lease.task.name, lease.checkpoint, WITHOUT_ARGUMENTS)
        return EMPTY if state is None else as_json(state)

    shown_class = cell(_("error class"), breakable, "error_class")
    progress_text = cell(_("progress"), _progress)
    message = cell(_("message"), preformatted, "error_message")
    shown_traceback = cell(_("traceback"), preformatted, "traceback")


LONGEST_BEGINNING = 200


class TaskLogAdmin(OfTaskAdmin):
    """The list has one captured line in each row, and shows its beginning."""

    columns = ("task_id", "attempt", "logged_at", "level", "logger")
    list_display = ("id", "logged_at", "level_name", "short_task_link", "attempt", "beginning")
    lookups = ("task__id__exact",)
    fields = (
        "id", "task_link", "attempt", "logged_at", "level_name", "logger",
        "shown_message",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(start=Left("message", LONGEST_BEGINNING + 1))

    level_name = cell(_("level"), level_name, "level")
    beginning = cell(_("message"), lambda start: Truncator(start).chars(LONGEST_BEGINNING), "start")
    shown_message = cell(_("message"), preformatted, "message")
