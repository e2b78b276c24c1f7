"""The rows that belong to a task: attempts, log lines, audit entries and retries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest

from taskqueue.access.permissions import VIEW_AUDITS, VIEW_LEASES, VIEW_LOGS, VIEW_WORKERS
from taskqueue.admin.audit import entry_words
from taskqueue.admin.filters import row_id
from taskqueue.admin.reason_words import reason_words
from taskqueue.engine.connections import database_alias
from taskqueue.models import Audit, Lease, Task, TaskLog, Worker
from taskqueue.monitoring.history import begun_at, seconds_between
from taskqueue.monitoring.read_models.attempt import log_lines

MOST_ATTEMPTS, MOST_LINES, MOST_ACTS, MOST_RETRIES = 50, 200, 50, 20
"""Rows that a task's page shows; the lists show the rest."""


@dataclass(frozen=True, kw_only=True)
class History:
    """The newest rows of each kind, oldest first; None if the user may not view them."""

    leases: list[Lease] | None
    lines: list[TaskLog] | None
    audits: list[Audit] | None
    retries: list[Task]
    attempt: int | None
    """Show the log lines of this attempt only."""


def history_of(request: HttpRequest, task_id: UUID) -> History:
    """Read the rows that the user may view."""
    alias, may = database_alias(), request.user.has_perm
    leases = Lease.objects.using(alias).filter(task_id=task_id).defer("return_value")
    lines = TaskLog.objects.using(alias).filter(task_id=task_id)
    attempt = row_id(request.GET.get("attempt", ""))
    if attempt is not None and attempt < 2**31:
        lines = lines.filter(attempt=attempt)
    else:
        attempt = None
    audits = Audit.objects.using(alias).filter(subject=str(task_id)).order_by("-id")
    kin = Task.objects.using(alias).filter(retry_of_id=task_id).only("id", "status", "enqueued_at")
    return History(
        leases=_newest(leases.order_by("-attempt"), MOST_ATTEMPTS) if may(VIEW_LEASES) else None,
        lines=_newest(lines.order_by("-id"), MOST_LINES) if may(VIEW_LOGS) else None,
        audits=_newest(audits, MOST_ACTS) if may(VIEW_AUDITS) else None,
        retries=_newest(kin.order_by("-id"), MOST_RETRIES),
        attempt=attempt,
    )


def _newest(rows: Any, most: int) -> list[Any]:
    return list(rows[:most])[::-1]


def shown_history(request: HttpRequest, history: History, now: datetime) -> dict[str, Any]:
    """Return the rows as the template takes them, newest attempts and audit entries first."""
    leases: list[Any] | None = history.leases
    if leases is not None:
        keys = _worker_keys(leases) if request.user.has_perm(VIEW_WORKERS) else {}
        for lease in leases:
            lease.worker_key = keys.get(lease.worker_id)
            lease.run_seconds = seconds_between(begun_at(lease), lease.finished_at or now)
    return {
        "leases": leases and leases[::-1],
        "lines": None if history.lines is None else log_lines(history.lines),
        "lines_of": history.attempt,
        "audits": None
        if history.audits is None
        else [
            (entry, entry_words(entry), reason_words(entry.reason))
            for entry in reversed(history.audits)
        ],
    }


def _worker_keys(leases: Sequence[Lease]) -> dict[str, int]:
    """Return the keys of the workers' rows, by name; pruned workers have none."""
    rows = Worker.objects.using(database_alias())
    rows = rows.filter(name__in={lease.worker_id for lease in leases})
    return dict(rows.values_list("name", "pk"))
