"""Durations and failures by task name, from the rollups alone."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from taskqueue.core.histogram import Histogram, quantile
from taskqueue.engine.connections import project_connection
from taskqueue.engine.sqlite.values import clock, loaded
from taskqueue.monitoring.read_models.base import about
from taskqueue.monitoring.reading import read
from taskqueue.monitoring.rollups import EPOCH, NAMES, Span, span_of, summed, whole_seconds
from taskqueue.monitoring.series import FORGOTTEN_AFTER, SETTLES_AFTER


@dataclass(frozen=True, kw_only=True)
class NamePerformance:
    """Attempts at tasks of one name; durations in seconds."""

    name: str
    count: int
    failed: int = about("Attempts that failed or were lost.")
    failure_rate: float = about("From 0 to 1.")
    run_p50: float | None
    run_p95: float | None
    wait_p50: float | None
    wait_p95: float | None
    slowest_seconds: float
    slowest_task_id: UUID | None = about("The task may have been pruned since.")


class Sum(NamedTuple):
    """The outcomes of attempts at tasks of one name."""

    number: int
    failed: int
    run_times: Histogram
    wait_times: Histogram
    slowest_seconds: float
    slowest_task_id: UUID | None

    def __add__(self, other: Sum) -> Sum:  # type: ignore[override]
        slowest = max(self, other, key=lambda each: each.slowest_seconds)
        return Sum(
            self.number + other.number,
            self.failed + other.failed,
            self.run_times + other.run_times,
            self.wait_times + other.wait_times,
            slowest.slowest_seconds,
            slowest.slowest_task_id,
        )


@dataclass(frozen=True)
class Known:
    """The sums of a span up to a time, after which rollups may still change."""

    first: datetime
    until: datetime
    read_at: float
    sums: Mapping[str, Sum]


# Sums by database and span: a page that is opened again reads only what is newer.
known: dict[tuple[str, str], Known] = {}
# Difference of the clocks of the database and this process that disables the cache.
SKEW = timedelta(minutes=1)


def performance(span: str) -> list[NamePerformance]:
    """Return each name that ran within the span, the most frequent first.

    What ended more than five minutes ago may be told as it was up to ten minutes ago. Raises
    ValueError for a span that is not in `SPANS`.
    """
    chosen, key, here = span_of(span), (project_connection().alias, span), clock()
    first = chosen.starts(here)[0]
    before = known.get(key)
    if before and (before.first != first or time.monotonic() - before.read_at >= FORGOTTEN_AFTER):
        before = None
    since = before.until if before else first
    settled = EPOCH + (here - SETTLES_AFTER - EPOCH) // chosen.part * chosen.part
    until = max(since, settled)
    now, closed, still_open = _read(chosen, since, until)
    if abs(now - here) > SKEW:
        first = chosen.starts(now)[0]
        _, sums, still_open = _read(chosen, first, first)
    else:
        sums = _added(before.sums if before else {}, closed)
        read_at = before.read_at if before else time.monotonic()
        known[key] = Known(first, until, read_at, sums)
    found = [_performance(name, each) for name, each in _added(sums, still_open).items()]
    return sorted((each for each in found if each.count), key=lambda each: (-each.count, each.name))


def _read(
    span: Span, first: datetime, until: datetime
) -> tuple[datetime, dict[str, Sum], dict[str, Sum]]:
    """Return the moment, and the sums by name before `until` and from then on."""
    rows = read(
        NAMES, step=span.step, first=first, first_text=whole_seconds(first),
        until=until, until_text=whole_seconds(until),
    )  # fmt: skip
    now = loaded(rows[0][0])
    assert now is not None
    parts: dict[bool, dict[str, list[Any]]] = {False: {}, True: {}}
    for _, is_open, name, *rest in rows:
        if name is not None:
            parts[bool(is_open)].setdefault(name, []).append(rest)
    closed, still_open = (
        {name: _sum(each) for name, each in parts[is_open].items()} for is_open in (False, True)
    )
    return now, closed, still_open


def _sum(rows: list[Any]) -> Sum:
    """Return the sum of rows of one name."""
    counts, failures, run_times, wait_times, seconds, ids = zip(*rows, strict=True)
    slowest = max(range(len(rows)), key=lambda place: seconds[place])
    task_id = ids[slowest]
    return Sum(
        sum(counts),
        sum(failures),
        Counter(summed(",".join(filter(None, run_times)))),
        Counter(summed(",".join(filter(None, wait_times)))),
        seconds[slowest],
        UUID(task_id) if isinstance(task_id, str) else task_id,
    )


def _added(some: Mapping[str, Sum], others: Mapping[str, Sum]) -> dict[str, Sum]:
    added = dict(some)
    for name, each in others.items():
        added[name] = added[name] + each if name in added else each
    return added


def _performance(name: str, of: Sum) -> NamePerformance:
    return NamePerformance(
        name=name,
        count=of.number,
        failed=of.failed,
        failure_rate=of.failed / of.number if of.number else 0.0,
        run_p50=_at_most(of.slowest_seconds, quantile(of.run_times, 0.5)),
        run_p95=_at_most(of.slowest_seconds, quantile(of.run_times, 0.95)),
        wait_p50=quantile(of.wait_times, 0.5),
        wait_p95=quantile(of.wait_times, 0.95),
        slowest_seconds=of.slowest_seconds,
        slowest_task_id=of.slowest_task_id,
    )


def _at_most(slowest: float, seconds: float | None) -> float | None:
    """Return the quantile, at most the slowest run: histograms round to buckets."""
    return seconds if seconds is None or not slowest else min(seconds, slowest)
