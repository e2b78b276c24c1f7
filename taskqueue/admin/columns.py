"""Labels of the columns that pages show as they are, in the language of the page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import display_for_field
from django.utils.translation import gettext_lazy as _

from taskqueue.display import EMPTY, moment

LABELS: dict[str, Any] = {
    "actor": _("actor"), "at": _("at"), "attempt": _("attempt"),
    "attempts_before_retry": _("attempts before retry"), "before": _("before"),
    "broadcast": _("broadcast"), "changed_at": _("changed"), "claimed_at": _("claimed"),
    "concurrency": _("concurrency"), "count": _("count"), "crash_delay": _("crash delay"),
    "crashes": _("crashes"), "created_at": _("created"), "deadline_at": _("deadline"),
    "declared_at": _("declared"), "detail": _("detail"), "enqueued_at": _("enqueued"),
    "error": _("error"), "error_class": _("error class"), "error_message": _("error message"),
    "expires_at": _("expires"), "failures": _("failures"),
    "failures_in_row": _("failures in a row"), "finished_at": _("finished"),
    "holds_unique_key": _("holds unique key"), "host": _("host"), "id": _("id"),
    "is_enabled": _("enabled"), "last_finished_at": _("last finished"),
    "last_nominal_at": _("last nominal"), "lease_duration": _("lease duration"),
    "lease_seconds": _("lease seconds"), "level": _("level"), "logged_at": _("logged"),
    "logger": _("logger"), "max_attempts": _("max attempts"), "max_crashes": _("max crashes"),
    "message": _("message"), "metadata": _("metadata"), "missed": _("missed"),
    "missed_window": _("missed window"), "name": _("name"), "next_at": _("next"),
    "nominal_at": _("nominal"), "nominal_until": _("nominal until"), "open_slots": _("open slots"),
    "options": _("options"), "overlap": _("overlap"), "parked_at": _("parked"),
    "pause_after_failures": _("pause after failures"), "pause_reason": _("pause reason"),
    "paused_at": _("paused"), "paused_by": _("paused by"), "paused_until": _("paused until"),
    "pid": _("pid"), "ping_interval": _("ping interval"), "pinned_to": _("pinned to"),
    "pool": _("pool"), "priority": _("priority"), "progress": _("progress"),
    "progress_message": _("progress message"), "progressed_at": _("progressed"),
    "prune_after": _("prune after"), "query": _("query"), "queue_name": _("queue name"),
    "queues": _("queues"), "ready_at": _("ready"), "reason": _("reason"),
    "removed_at": _("removed"), "request": _("request"), "request_reason": _("request reason"),
    "request_seen_at": _("request seen"), "requested_at": _("requested"),
    "requested_by": _("requested by"), "retention": _("retention"), "retry_at": _("retry"),
    "return_value": _("return value"), "rule": _("rule"), "run_after": _("run after"),
    "running_leases": _("running leases"), "schedule": _("schedule"), "seen_at": _("seen"),
    "served_until": _("served until"), "source": _("source"), "started_at": _("started"),
    "status": _("status"), "stop_reason": _("stop reason"),
    "stop_requested_at": _("stop requested"), "stop_requested_by": _("stop requested by"),
    "stop_seen_at": _("stop seen"), "stopped_at": _("stopped"), "subject": _("subject"),
    "successes": _("successes"), "task": _("task"), "task_name": _("task name"),
    "task_status": _("task status"), "traceback": _("traceback"), "trouble": _("trouble"),
    "unique_for": _("unique for"), "unique_key": _("unique key"), "unique_scope": _("unique scope"),
    "unique_until": _("unique until"), "verb": _("verb"), "versions": _("versions"),
    "wedged_at": _("wedged"), "worker": _("worker"), "worker_names": _("worker names"),
    "workers": _("workers"),
}  # fmt: skip


@cache
def column(name: str) -> Callable[[Any], Any]:
    """Show a column under its label: points in time to the second, for a task's life is short."""

    @admin.display(description=LABELS[name])
    def show(row: Any) -> Any:
        value = getattr(row, name)
        if isinstance(value, datetime):
            return moment(value)
        return display_for_field(value, row._meta.get_field(name), EMPTY)

    show.__name__ = name
    return show


def cell(label: Any, render: Callable[[Any], Any], name: str = "") -> Callable[[Any, Any], Any]:
    """Make a column of an admin class that renders the named value of a row, or the row itself."""

    @admin.display(description=label)
    def show(model_admin: Any, row: Any) -> Any:
        value = getattr(row, name) if name else row
        return EMPTY if value in (None, "", {}) else render(value)

    return show
