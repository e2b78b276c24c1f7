"""Wedged attempts: those that run for far longer than their like, without a sign of life."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.states import LeaseStatus
from taskqueue.engine.connections import database_alias
from taskqueue.engine.dialect import dialect_for
from taskqueue.models import Lease

logger = logging.getLogger("taskqueue.worker")

LEAST = timedelta(minutes=10)
FACTOR = 10.0
SHARE = 0.95
SAMPLE = 2000
"""How many of the newest attempts tell how long a name usually takes."""
ENOUGH = 20
"""Of a name with fewer successes among them, nothing is known."""


def mark_wedged(
    connection: BaseDatabaseWrapper,
    *,
    least: timedelta = LEAST,
    factor: float = FACTOR,
    enough: int = ENOUGH,
    sample: int = SAMPLE,
) -> int:
    """Mark the running attempts that have been quiet for too long; how many there were.

    Too long is `least`, and `factor` times what 95 of 100 attempts of the name take. Progress and
    log lines are signs of life; one that comes later clears the mark.
    """
    wording = dialect_for(connection)
    quiet = wording.quiet_attempts(connection, least=least)
    for each in quiet:
        if each.marked_for is not None and each.seconds < each.marked_for:
            wording.clear_wedged(connection, each.lease_id)
    suspects = [each for each in quiet if each.marked_for is None]
    if not suspects:
        return 0
    names = sorted({each.name for each in suspects})
    usual = _usual(wording.recent_runs(connection, names=names, sample=sample), enough)
    marked = 0
    for each in suspects:
        seconds = usual.get(each.name)
        if seconds is None or each.seconds <= factor * seconds:
            continue
        if wording.set_wedged(connection, each.lease_id):
            marked += 1
            logger.warning(
                "Attempt seems wedged task=%s id=%s attempt=%s worker=%s"
                " quiet_seconds=%.0f usual_seconds=%.3f",
                each.name, each.task_id, each.attempt, each.worker, each.seconds, seconds,
            )  # fmt: skip
    return marked


def _usual(runs: Iterable[tuple[str, float]], enough: int) -> dict[str, float]:
    """What 95 of 100 attempts of each name take at most, by the nearest rank."""
    durations: defaultdict[str, list[float]] = defaultdict(list)
    for name, seconds in runs:
        durations[name].append(seconds)
    return {
        name: sorted(found)[math.ceil(SHARE * len(found)) - 1]
        for name, found in durations.items()
        if len(found) >= enough
    }


def wedged() -> QuerySet[Lease]:
    """The running attempts that are marked, with their tasks, the longest marked first."""
    return (
        Lease.objects.using(database_alias())
        .filter(status=LeaseStatus.RUNNING.value, wedged_at__isnull=False)
        .select_related("task")
        .order_by("wedged_at")
    )
