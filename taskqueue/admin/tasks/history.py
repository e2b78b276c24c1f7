"""The rows that belong to a task: attempts, log lines, audit entries and retries."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from taskqueue.admin.audit import entry_words
from taskqueue.admin.filters import row_id
from taskqueue.admin.links import Links
from taskqueue.admin.reason_words import reason_words
from taskqueue.admin.tasks.timeline import error_line
from taskqueue.core.states import LeaseStatus
from taskqueue.display import EMPTY, badge, moment, preformatted, short_duration
from taskqueue.engine.connections import database_alias
from taskqueue.models import Audit, Lease, Task, TaskLog, Worker
from taskqueue.monitoring.history import begun_at, seconds_between
from taskqueue.monitoring.read_models.attempt import level_name

MOST_ATTEMPTS, MOST_LINES, MOST_ACTS, MOST_RETRIES = 50, 200, 50, 20
"""Rows that a task's page shows; the lists show the rest."""


@dataclass
class History:
    """The newest rows of each kind, oldest first; None if the user may not view them."""

    leases: list[Lease] | None = None
    lines: list[TaskLog] | None = None
    audits: list[Audit] | None = None
    retries: list[Task] = field(default_factory=list)
    attempt: int | None = None
    """Show the log lines of this attempt only."""


def history_of(request: HttpRequest, task_id: UUID) -> History:
    """Read the rows that the user may view."""
    alias, may = database_alias(), request.user.has_perm
    found = History(attempt=_attempt_of(request))
    if may("taskqueue.view_lease"):
        leases = Lease.objects.using(alias).filter(task_id=task_id).defer("return_value")
        found.leases = _newest(leases.order_by("-attempt")[:MOST_ATTEMPTS])
    if may("taskqueue.view_tasklog"):
        lines = TaskLog.objects.using(alias).filter(task_id=task_id)
        if found.attempt is not None:
            lines = lines.filter(attempt=found.attempt)
        found.lines = _newest(lines.order_by("-id")[:MOST_LINES])
    if may("taskqueue.view_audit"):
        acts = Audit.objects.using(alias).filter(subject=str(task_id))
        found.audits = _newest(acts.order_by("-id")[:MOST_ACTS])
    kin = Task.objects.using(alias).filter(retry_of_id=task_id).only("id", "status", "enqueued_at")
    found.retries = _newest(kin.order_by("-id")[:MOST_RETRIES])
    return found


def _attempt_of(request: HttpRequest) -> int | None:
    number = row_id(request.GET.get("attempt", ""))
    return number if number is not None and number < 2**31 else None


def _newest(rows: Any) -> list[Any]:
    return list(rows)[::-1]


def shown_history(
    request: HttpRequest, links: Links, task: Task, history: History, now: Any
) -> dict[str, Any]:
    """Return the rows as the template takes them, newest attempts first."""
    parts: dict[str, Any] = {}
    if history.leases is not None:
        sees_workers = request.user.has_perm("taskqueue.view_worker")
        workers = _worker_keys(history.leases) if sees_workers else {}
        parts["leases"] = [
            _attempt(lease, workers, now, links) for lease in reversed(history.leases)
        ]
        parts["leases_url"] = links.list_url(Lease, task__id__exact=task.pk)
    if history.lines is not None:
        parts["lines"] = [_line(line) for line in history.lines]
        parts["lines_of"] = history.attempt
        parts["lines_url"] = links.list_url(TaskLog, task__id__exact=task.pk)
    if history.audits is not None:
        parts["audits"] = [_act(entry) for entry in reversed(history.audits)]
        parts["audits_url"] = links.list_url(Audit, q=task.pk)
    return parts


def _worker_keys(leases: Sequence[Lease]) -> dict[str, int]:
    """Return the keys of the workers' rows, by name; pruned workers have none."""
    names = {lease.worker_id for lease in leases}
    if not names:
        return {}
    rows = Worker.objects.using(database_alias()).filter(name__in=names)
    return dict(rows.values_list("name", "pk"))


def progress_of(lease: Lease) -> str:
    """Return the progress of the attempt."""
    if lease.progress is None:
        return EMPTY
    return f"{lease.progress:.0f} % {lease.progress_message}".rstrip()


def progress_bar(lease: Lease) -> SafeString:
    """Show the progress as a bar."""
    if lease.progress is None:
        return EMPTY
    percent = min(100.0, max(0.0, lease.progress))
    return format_html(
        '<progress class="taskqueue-progress" max="100" value="{}" aria-label="{}"></progress> {}',
        f"{percent:.1f}", _("Progress"), progress_of(lease),
    )  # fmt: skip


def _attempt(lease: Lease, workers: dict[str, int], now: Any, links: Links) -> dict[str, Any]:
    begun, ended = begun_at(lease), lease.finished_at or now
    return {
        "number": lease.attempt,
        "attempt": links.to_row(Lease, lease.pk, lease.attempt),
        "status": _status(lease),
        "worker": lease.worker_id
        if lease.worker_id not in workers
        else links.to_row(Worker, workers[lease.worker_id], lease.worker_id),
        "times": [moment(at) for at in (lease.claimed_at, lease.started_at, lease.finished_at)],
        "duration": short_duration(seconds_between(begun, ended)),
        "progress": progress_bar(lease),
        "error": error_line(lease.error_class, lease.error_message),
        "traceback": preformatted(lease.traceback) if lease.traceback else None,
    }


def _status(lease: Lease) -> SafeString:
    """Show the status; for a running attempt, also whether it seems wedged."""
    is_wedged = lease.status == LeaseStatus.RUNNING and lease.wedged_at is not None
    return badge(lease.status, _("running, seems wedged") if is_wedged else None)


def _line(line: TaskLog) -> dict[str, Any]:
    return {
        "logged_at": moment(line.logged_at),
        "attempt": line.attempt,
        "level": level_name(line.level),
        "is_bad": line.level >= logging.WARNING,
        "logger": line.logger,
        "message": preformatted(line.message),
    }


def _act(line: Audit) -> dict[str, Any]:
    return {
        "at": moment(line.at),
        "verb": entry_words(line),
        "actor": line.actor,
        "reason": reason_words(line.reason),
        "before": badge(line.before) if line.before else EMPTY,
        "detail": line.detail,
    }
