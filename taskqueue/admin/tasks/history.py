"""The history of a task: attempts, log lines, audit entries, retries and the timeline."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _

from taskqueue.access.permissions import VIEW_AUDITS, VIEW_LEASES, VIEW_LOGS, VIEW_WORKERS
from taskqueue.admin.audit import entry_words
from taskqueue.admin.filters import row_id
from taskqueue.display import as_json
from taskqueue.engine.connections import database_alias
from taskqueue.models import Audit, Lease, Task, TaskLog, Worker
from taskqueue.monitoring.durations import short_duration
from taskqueue.monitoring.history import (
    MOST_ROWS,
    NOW,
    Event,
    Stretch,
    What,
    begun_at,
    seconds_between,
)
from taskqueue.monitoring.read_models.attempt import level_name, log_lines
from taskqueue.monitoring.read_models.base import visible_checkpoint
from taskqueue.monitoring.timeline import title_of
from taskqueue.reason_words import detail_words, reason_words

# The most rows that a task's page shows; the lists show the rest.
MOST_ATTEMPTS, MOST_LINES, MOST_ACTS, MOST_RETRIES = 50, 200, 50, 20
# The levels from which log lines may be shown.
LEVELS = (logging.INFO, logging.WARNING, logging.ERROR)


@dataclass(frozen=True, kw_only=True)
class History:
    """The newest rows of each kind, oldest first; None if the user may not view them."""

    leases: list[Lease] | None
    lines: list[TaskLog] | None
    audits: list[Audit] | None
    retries: list[Task]
    # Show only the log lines of this attempt, from this level on.
    attempt: int | None
    level: int | None


def history_of(request: HttpRequest, task_id: UUID) -> History:
    """Read the rows that the user may view."""
    alias, may = database_alias(), request.user.has_perm
    leases = Lease.objects.using(alias).filter(task_id=task_id).defer("return_value")
    lines = lines_of(request, task_id)
    audits = Audit.objects.using(alias).filter(subject=str(task_id)).order_by("-id")
    kin = Task.objects.using(alias).filter(retry_of_id=task_id).only("id", "status", "enqueued_at")
    return History(
        leases=_newest(leases.order_by("-attempt"), MOST_ATTEMPTS) if may(VIEW_LEASES) else None,
        lines=_newest(lines.order_by("-id"), MOST_LINES) if may(VIEW_LOGS) else None,
        audits=_newest(audits, MOST_ACTS) if may(VIEW_AUDITS) else None,
        retries=_newest(kin.order_by("-id"), MOST_RETRIES),
        attempt=_attempt(request),
        level=_level(request),
    )


def lines_of(request: HttpRequest, task_id: UUID) -> QuerySet[TaskLog]:
    """Return the task's lines for the attempt and the level in the address."""
    lines = TaskLog.objects.using(database_alias()).filter(task_id=task_id)
    attempt, level = _attempt(request), _level(request)
    if attempt is not None:
        lines = lines.filter(attempt=attempt)
    return lines if level is None else lines.filter(level__gte=level)


def _attempt(request: HttpRequest) -> int | None:
    attempt = row_id(request.GET.get("attempt", ""))
    return attempt if attempt is not None and attempt < 2**31 else None


def _level(request: HttpRequest) -> int | None:
    level = row_id(request.GET.get("level", ""))
    return level if level in LEVELS else None


def _level_links(history: History) -> list[dict[str, Any]]:
    """Return links that keep the attempt, and show lines from a level on."""
    kept = {} if history.attempt is None else {"attempt": history.attempt}
    return [
        {
            "title": _("all levels") if level is None else level_name(level),
            "query": urlencode(kept if level is None else {**kept, "level": level}),
            "is_current": level == history.level,
        }
        for level in (None, *LEVELS)
    ]


def _newest(rows: Any, most: int) -> list[Any]:
    return list(rows[:most])[::-1]


def shown_history(
    request: HttpRequest, history: History, task: Task, now: datetime
) -> dict[str, Any]:
    """Return the rows for the template, newest attempts and audit entries first."""
    leases: list[Any] | None = history.leases
    if leases is not None:
        keys = _worker_keys(leases) if request.user.has_perm(VIEW_WORKERS) else {}
        for lease in leases:
            lease.worker_key = keys.get(lease.worker_id)
            state = visible_checkpoint(task.name, lease.checkpoint, request.user)
            lease.shown_checkpoint = None if state is None else as_json(state)
            lease.run_seconds = seconds_between(begun_at(lease), lease.finished_at or now)
    return {
        "leases": leases and leases[::-1],
        "lines": None if history.lines is None else log_lines(history.lines),
        "lines_of": history.attempt,
        "level": history.level,
        "levels": _level_links(history),
        "audits": None
        if history.audits is None
        else [
            (entry, entry_words(entry), detail_words(entry.detail), reason_words(entry.reason))
            for entry in reversed(history.audits)
        ],
    }


def _worker_keys(leases: Sequence[Lease]) -> dict[str, int]:
    """Return the keys of the workers' rows, by name; pruned workers have none."""
    rows = Worker.objects.using(database_alias())
    rows = rows.filter(name__in={lease.worker_id for lease in leases})
    return dict(rows.values_list("name", "pk"))


WIDTH, LEAST = 1000.0, 4.0
# The height of a row, with the gap below it.
ROW = 16
# For other events, the status is the style.
LOOKS = {
    What.ENQUEUED: "start",
    What.ATTEMPT_STARTED: "start",
    What.STOP_REQUESTED: "act",
    What.STOP_SEEN: "act",
    What.WEDGED: "lost",
    What.ACTION: "act",
    **dict.fromkeys((What.SCHEDULED, What.STEP, What.READY, What.PROGRESSED), "start"),
    **dict.fromkeys(NOW, "now"),
}


def shown_events(events: Sequence[Event]) -> list[tuple[str, str, Event]]:
    """Return the style, the title and the event of each."""
    return [(LOOKS.get(event.what, event.status), title_of(event), event) for event in events]


def bar(stretches: Sequence[Stretch]) -> dict[str, Any]:
    """Lay the periods out as rectangles; empty if there are none."""
    if not stretches:
        return {}
    first = min(stretch.start for stretch in stretches)
    whole = max(seconds_between(first, max(stretch.end for stretch in stretches)), 1e-6)
    parts = []
    for stretch in stretches:
        left = min(seconds_between(first, stretch.start) / whole * WIDTH, WIDTH - LEAST)
        width = min(max(stretch.seconds / whole * WIDTH, LEAST), WIDTH - left)
        place = {"left": f"{left:.1f}", "top": stretch.row * ROW, "width": f"{width:.1f}"}
        parts.append({"kind": stretch.kind, "words": _words(stretch), **place})
    return {
        "parts": parts,
        "height": (1 + max(stretch.row for stretch in stretches)) * ROW - 2,
        "label": ", ".join(map(_words, stretches[-MOST_ROWS:])),
    }


def _words(stretch: Stretch) -> str:
    words = {"wait": _("waited"), "idle": _("finished")}
    # Outside of the f-string, so that it is found for translation.
    word = words.get(stretch.kind, _("ran"))
    return f"{word} {short_duration(stretch.seconds)}"
