"""How long it took until other workers had the tasks that a worker left behind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from taskqueue.models import Lease, Task


class Hit(NamedTuple):
    """A moment by the database's clock, and the attempts (task, number) that it put an end to."""

    at: float
    attempts: tuple[tuple[UUID, int], ...]


def takeovers(hits: Iterable[Hit]) -> list[tuple[float, float]]:
    """From when to when: from each hit to the next claim of each task that was lost by it.

    Only those tasks count that go before all others: for the rest a backlog may stand in the way,
    and their time is that until their lease was ended, when they were free to be claimed.
    """
    spans = []
    for hit in hits:
        ids = [task_id for task_id, _ in hit.attempts]
        urgent = set(Task.objects.filter(id__in=ids, priority__gt=0).values_list("id", flat=True))
        leases = {
            (lease.task_id, lease.attempt): lease for lease in Lease.objects.filter(task_id__in=ids)
        }
        for task_id, attempt in hit.attempts:
            lost = leases.get((task_id, attempt))
            if lost is None or lost.status != "lost" or lost.finished_at is None:
                continue
            after = leases.get((task_id, attempt + 1)) if task_id in urgent else None
            moment = after.claimed_at if after is not None else lost.finished_at
            spans.append((hit.at, moment.timestamp()))
    return spans


def percentile(values: list[float], share: float) -> float | None:
    """The value below which that share of them lies; None without any."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
