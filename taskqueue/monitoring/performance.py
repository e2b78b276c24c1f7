"""Durations and failures by task name, computed from the rollups alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from taskqueue.core.histogram import Histogram, quantile
from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import as_uuid
from taskqueue.engine.sqlite.values import clock, loaded
from taskqueue.monitoring.read_models.base import about
from taskqueue.monitoring.reading import read
from taskqueue.monitoring.rollups import (
    EPOCH,
    NAMES,
    SETTLES_AFTER,
    ChartCache,
    Span,
    merged,
    span_of,
    summed,
    whole_seconds,
)


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


Named = tuple[str, Sum]
# Sums by name up to a time after which rollups may still change; by database, span and start.
cache: ChartCache[tuple[datetime, dict[str, Sum]]] = ChartCache()
NEVER = datetime(9999, 12, 31, tzinfo=UTC)
# A larger difference between the clocks of the database and this process disables the cache.
SKEW = timedelta(minutes=1)


def performance(span: str) -> list[NamePerformance]:
    """Return each name that ran within the span, the most frequent first.

    Figures older than five minutes may be up to ten minutes out of date. Raises ValueError for a
    span that is not in `SPANS`.
    """
    chosen, here = span_of(span), clock()
    first = chosen.starts(here)[0]
    chart = project_connection().alias, span, first
    read_at, remembered = cache.of(chart)
    since, sums = remembered or (first, {})
    settled = EPOCH + (here - SETTLES_AFTER - EPOCH) // chosen.part * chosen.part
    until = max(since, settled)
    now, closed, still_open = _read(chosen, since, until)
    if abs(now - here) > SKEW:
        first = chosen.starts(now)[0]
        _, _, still_open = _read(chosen, first, first)
        sums = {}
    else:
        sums = _sums([*sums.items(), *closed])
        cache.remember(chart, read_at, (until, sums))
    shown = _by_name(_sums([*sums.items(), *still_open])).values()
    return sorted(shown, key=lambda shown: (-shown.count, shown.name))


def sums_around(
    span: Span, first: datetime, until: datetime, ends: datetime = NEVER
) -> tuple[dict[str, NamePerformance], dict[str, NamePerformance]]:
    """Return by name what ran from `first` until `until`, and from then until `ends`."""
    _, before, after = _read(span, first, until, ends)
    return _by_name(_sums(before)), _by_name(_sums(after))


def _by_name(sums: dict[str, Sum]) -> dict[str, NamePerformance]:
    return {name: _performance(name, total) for name, total in sums.items() if total.number}


def _read(
    span: Span, first: datetime, until: datetime, ends: datetime = NEVER
) -> tuple[datetime, list[Named], list[Named]]:
    """Return the current time, and sums of the span's parts before `until` and after it."""
    rows = read(
        NAMES, step=span.step, first=first, first_text=whole_seconds(first),
        until=until, until_text=whole_seconds(until), ends=ends, ends_text=whole_seconds(ends),
    )  # fmt: skip
    now = loaded(rows[0][0])
    assert now is not None
    parts: defaultdict[tuple[bool, str], list[Any]] = defaultdict(list)
    for _, is_open, name, *figures in rows:
        if name is not None:
            parts[bool(is_open), name].append(figures)
    closed: list[Named] = []
    still_open: list[Named] = []
    for (is_open, name), of_name in parts.items():
        (still_open if is_open else closed).append((name, _of_rows(of_name)))
    return now, closed, still_open


def _of_rows(rows: list[Any]) -> Sum:
    """Return the sum of one name's rows; joined first, their histograms are parsed much faster."""
    numbers, failures, *histograms, _, _ = zip(*rows, strict=True)
    run_times, wait_times = (summed(",".join(filter(None, texts))) for texts in histograms)
    *_, seconds, task_id = max(rows, key=lambda row: row[-2])
    slowest = None if task_id is None else as_uuid(task_id)
    return Sum(sum(numbers), sum(failures), run_times, wait_times, seconds, slowest)


def _sums(parts: Iterable[Named]) -> dict[str, Sum]:
    by_name: defaultdict[str, list[Sum]] = defaultdict(list)
    for name, part in parts:
        by_name[name].append(part)
    return {name: _sum(parts) for name, parts in by_name.items()}


def _sum(parts: list[Sum]) -> Sum:
    slowest = max(parts, key=lambda part: part.slowest_seconds)
    return slowest._replace(
        number=sum(part.number for part in parts),
        failed=sum(part.failed for part in parts),
        run_times=merged(part.run_times for part in parts),
        wait_times=merged(part.wait_times for part in parts),
    )


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
    """Return the quantile, but not above the slowest run, because histograms round to buckets."""
    return seconds if seconds is None or not slowest else min(seconds, slowest)
