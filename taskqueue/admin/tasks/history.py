"""A task's attempts and log lines, as its page shows them."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.text import Truncator

from taskqueue.admin.display import EMPTY, link_to_row, list_url, moment, preformatted
from taskqueue.engine.connections import database_alias
from taskqueue.models import Lease, TaskLog
from taskqueue.states import LeaseStatus

MOST_ATTEMPTS, MOST_LINES = 50, 200
"""How many rows a task's page shows; the lists show the rest."""
LONGEST_MESSAGE = 300


def history(request: HttpRequest, object_id: str) -> dict[str, Any]:
    """The newest attempts and log lines, for those who may view them."""
    try:
        task_id = UUID(object_id)
    except ValueError:
        return {}
    parts: dict[str, Any] = {}
    if request.user.has_perm("taskqueue.view_lease"):
        leases = Lease.objects.using(database_alias()).filter(task_id=task_id)
        parts["leases"] = [_attempt(each) for each in leases.order_by("-attempt")[:MOST_ATTEMPTS]]
        parts["leases_url"] = list_url(Lease, task__id__exact=task_id)
    if request.user.has_perm("taskqueue.view_tasklog"):
        lines = TaskLog.objects.using(database_alias()).filter(task_id=task_id)
        newest = lines.order_by("-id")[:MOST_LINES]
        parts["lines"] = [_line(each) for each in reversed(newest)]
        parts["lines_url"] = list_url(TaskLog, task__id__exact=task_id)
    return parts


def progress_of(lease: Lease) -> str:
    """How far the attempt said it is."""
    if lease.progress is None:
        return EMPTY
    return f"{lease.progress:.0f} % {lease.progress_message}".rstrip()


def level_name(level: int) -> str:
    """The name that `logging` gives a level."""
    return str(logging.getLevelName(level))


def _attempt(lease: Lease) -> dict[str, Any]:
    message = Truncator(lease.error_message).chars(LONGEST_MESSAGE)
    return {
        "number": lease.attempt,
        "attempt": link_to_row(Lease, lease.pk, lease.attempt),
        "status": _status(lease),
        "worker": lease.worker_id,
        "times": [moment(at) for at in (lease.claimed_at, lease.started_at, lease.finished_at)],
        "progress": progress_of(lease),
        "error": ": ".join(filter(None, (lease.error_class, message))),
        "traceback": preformatted(lease.traceback) if lease.traceback else None,
    }


def _status(lease: Lease) -> str:
    """Its status; of one that runs, also whether it seems wedged."""
    is_wedged = lease.status == LeaseStatus.RUNNING and lease.wedged_at is not None
    return f"{lease.status}, seems wedged" if is_wedged else lease.status


def _line(line: TaskLog) -> dict[str, Any]:
    return {
        "logged_at": moment(line.logged_at),
        "attempt": line.attempt,
        "level": level_name(line.level),
        "logger": line.logger,
        "message": preformatted(line.message),
    }
