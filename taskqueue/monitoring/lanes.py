"""The queues: what waits there, what runs, who serves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from taskqueue.engine.connections import database_alias
from taskqueue.models import Queue
from taskqueue.models.clock import DatabaseClock
from taskqueue.monitoring.counts import Count
from taskqueue.monitoring.fleet import WorkerFigures, worker_figures


@dataclass(frozen=True, kw_only=True)
class QueueFigures:
    """A queue at this moment."""

    name: str
    waiting: Count
    """Tasks that are ready."""
    oldest_seconds: float | None
    """How long the one of them waits that could have run first; None where nothing waits."""
    running: int
    slots: int
    """Of the workers that take from it."""
    is_served: bool
    """Whether a worker lives that takes from it."""
    is_paused: bool
    paused_at: datetime | None
    paused_until: datetime | None
    paused_by: str
    pause_reason: str
    finished_lately: list[int]
    """Tasks that came to their end, in steps of five minutes over the last hour, oldest first."""


def queue_figures(
    *, limit: int = 100, workers: Sequence[WorkerFigures] | None = None
) -> list[QueueFigures]:
    """The queues by name. `workers`, where they have been read already, spares a query."""
    if workers is None:
        workers = worker_figures(limit=1000)
    rows = Queue.objects.using(database_alias()).annotate(now=DatabaseClock()).order_by("name")
    found = []
    for row in rows[:limit]:
        serving = [each for each in workers if each.takes_tasks and each.serves(row.name)]
        found.append(
            QueueFigures(
                name=row.name, waiting=Count(0), oldest_seconds=None, running=0,
                slots=sum(each.slots for each in serving), is_served=bool(serving),
                is_paused=row.is_paused_at(row.now), paused_at=row.paused_at,
                paused_until=row.paused_until, paused_by=row.paused_by,
                pause_reason=row.pause_reason, finished_lately=[0] * 12,
            )
        )  # fmt: skip
    return found
