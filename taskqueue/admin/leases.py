"""Leases: one attempt of a task by a worker, and its outcome."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.base import OfTaskAdmin
from taskqueue.admin.columns import cell
from taskqueue.admin.filters import LeaseStatusFilter, WedgedFilter, WorkerFilter
from taskqueue.display import EMPTY, badge, preformatted
from taskqueue.models import Lease, Worker


def _progress(lease: Lease) -> str:
    if lease.progress is None:
        return EMPTY
    return f"{lease.progress:.0f} % {lease.progress_message}".rstrip()


class LeaseAdmin(OfTaskAdmin):
    """One attempt a row."""

    columns = (
        "task_id", "worker_id", "attempt", "status", "claimed_at", "finished_at", "wedged_at",
        "error_class",
    )  # fmt: skip
    list_display = (
        "id", "task_link", "attempt", "shown_status", "worker_link",
        "claimed_at", "finished_at", "wedged_at", "error_class",
    )  # fmt: skip
    list_filter = (LeaseStatusFilter, WedgedFilter, WorkerFilter)
    lookups = ("status__exact", "task__id__exact", "worker__name__exact", "wedged")
    fieldsets = (
        (None, {"fields": (
            "id", "task_link", "attempt", "shown_status", "worker_link", "progress_text",
        )}),
        (_("Times"), {"fields": (
            "claimed_at", "started_at", "progressed_at", "wedged_at", "expires_at", "finished_at",
        )}),
        (_("Error"), {"fields": ("error_class", "message", "shown_traceback")}),
        (_("Stop"), {"fields": (
            "stop_requested_at", "stop_requested_by", "stop_reason", "stop_seen_at",
        )}),
    )  # fmt: skip

    shown_status = cell(_("status"), badge, "status")

    @admin.display(description=_("worker"))
    def worker_link(self, lease: Lease) -> SafeString:
        return self.links.to_list(Worker, lease.worker_id, q=lease.worker_id)

    progress_text = cell(_("progress"), _progress)
    message = cell(_("message"), preformatted, "error_message")
    shown_traceback = cell(_("traceback"), preformatted, "traceback")
