"""A week of rollups, with days and nights."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from taskqueue.core.histogram import bucket_of, stored
from taskqueue.models import Depth, Rollup
from tests.browser.lively.kinds import KINDS, Kind
from tests.browser.lively.moments import DEPLOYED, spread

SLOWED, SLOWER = "shop.search.reindex", 20
"""How many times slower one definition is since the deploy: more than chance explains."""
MOST_MEASURED = 40
"""Durations that are drawn for one row; a histogram of more would look the same."""


def fill_rollups(now: datetime, random: Random) -> None:
    """Hours of a week, quarters of a day, minutes of the last hours: none stands for another's."""
    rows: list[Rollup] = []
    for starts_at, seconds in _spans(now):
        share = seconds / 60 * _load(starts_at)
        is_new = starts_at > now - DEPLOYED
        rows += [_rollup(kind, starts_at, seconds, share, random, is_new) for kind in KINDS[:-1]]
    Rollup.objects.bulk_create((row for row in rows if row.succeeded or row.failed), batch_size=500)
    fill_depths(now, random)


def fill_depths(now: datetime, random: Random) -> None:
    """How many tasks waited, in the same spans; before the last ten minutes nobody looked once."""
    queues = sorted({kind.queue_name for kind in KINDS})
    rows = []
    for starts_at, seconds in _spans(now):
        if timedelta(minutes=20) < now - starts_at < timedelta(minutes=26):
            continue
        waiting = {name: max(0, int(random.gauss(30 * _load(starts_at), 20))) for name in queues}
        waiting[""] = sum(waiting.values())
        rows += [
            Depth(resolution=seconds, starts_at=starts_at, queue_name=name, waiting=number)
            for name, number in waiting.items()
        ]
    Depth.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True)


def _spans(now: datetime) -> Iterator[tuple[datetime, int]]:
    hour = now.replace(minute=0, second=0, microsecond=0)
    minute = now.replace(second=0, microsecond=0)
    for number in range(24, 24 * 7):
        yield hour - timedelta(hours=number), 3600
    for number in range(2 * 4, 24 * 4 - 4):
        yield hour - timedelta(minutes=15 * number) - timedelta(minutes=15), 900
    start = hour - timedelta(hours=2)
    for number in range(int((minute - start).total_seconds()) // 60 + 1):
        yield start + timedelta(minutes=number), 60


def _load(moment: datetime) -> float:
    """More by day than by night, and a storm of errors a few hours ago."""
    hours = moment.astimezone(UTC).hour + moment.minute / 60
    return 0.55 + 0.45 * math.sin((hours - 8) / 24 * 2 * math.pi)


def _rollup(
    kind: Kind, starts_at: datetime, seconds: int, share: float, random: Random, is_new: bool
) -> Rollup:
    count = int(random.gauss(kind.share * share, math.sqrt(kind.share * share + 0.1)) + 0.5)
    count = max(0, count)
    bad = 6 if random.random() < 0.03 else 1
    failed = sum(random.random() < kind.failure_rate * bad for _ in range(count))
    usual = kind.seconds * (SLOWER if is_new and kind.name == SLOWED else 1)
    times = [spread(random, usual) for _ in range(min(count, MOST_MEASURED))]
    waits = [spread(random, 0.25) for _ in times]
    scale = max(1, count // MOST_MEASURED)
    return Rollup(
        resolution=seconds, starts_at=starts_at, queue_name=kind.queue_name, name=kind.name,
        succeeded=count - failed, failed=failed, lost=int(random.random() < 0.004),
        stopped=int(random.random() < 0.008), tasks_succeeded=count - failed, tasks_failed=failed,
        run_seconds=sum(times) * scale, run_times=_histogram(times, scale),
        wait_seconds=sum(waits) * scale, wait_times=_histogram(waits, scale),
        slowest_seconds=max(times, default=0.0),
    )  # fmt: skip


def _histogram(durations: list[float], scale: int) -> dict[str, int]:
    counts = Counter(map(bucket_of, durations))
    return stored({bucket: count * scale for bucket, count in counts.items()})
