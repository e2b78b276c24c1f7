"""Attempts and their durations over time, computed from the rollups alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from taskqueue.core.histogram import quantile
from taskqueue.engine.connections import project_connection
from taskqueue.engine.sqlite.values import clock, loaded
from taskqueue.monitoring.reading import read
from taskqueue.monitoring.rollups import (
    EPOCH,
    SERIES,
    SETTLES_AFTER,
    ChartCache,
    Span,
    merged,
    span_of,
    summed,
    whole_seconds,
)


class Attempts(NamedTuple):
    """Attempts that ended within some time, by outcome; durations in seconds, None if none ran."""

    succeeded: int = 0
    failed: int = 0
    lost: int = 0
    stopped: int = 0
    run_times: Mapping[int, int] = MappingProxyType({})
    # The time between being ready and the start of the body.
    wait_times: Mapping[int, int] = MappingProxyType({})

    @property
    def ended(self) -> int:
        """The total number."""
        return self.succeeded + self.failed + self.lost + self.stopped

    @property
    def run_p50(self) -> float | None:
        return quantile(self.run_times, 0.5)

    @property
    def run_p95(self) -> float | None:
        return quantile(self.run_times, 0.95)

    @property
    def wait_p50(self) -> float | None:
        return quantile(self.wait_times, 0.5)

    @property
    def wait_p95(self) -> float | None:
        return quantile(self.wait_times, 0.95)


OUTCOMES = ("succeeded", "failed", "lost", "stopped")


@dataclass(frozen=True, kw_only=True)
class Series:
    """Attempts by step, oldest first; there are as many `starts` as `steps`."""

    span: str
    step_seconds: int
    starts: list[datetime]
    steps: list[Attempts]

    @cached_property
    def whole(self) -> Attempts:
        """The attempts of the whole span."""
        return _sum(self.steps)

    def by_step(self, figure: str) -> list[Any]:
        """Return a figure of `Attempts`, such as `failed` or `wait_p95`, of each step."""
        return [getattr(step, figure) for step in self.steps]


NOTHING = Attempts()
cache: ChartCache[Mapping[datetime, Attempts]] = ChartCache()


def series(span: str, *, queue_name: str = "", name: str = "") -> Series:
    """Return attempts by step, of all tasks or of one queue or name.

    Steps that ended more than five minutes ago may be up to ten minutes old. Raises ValueError for
    a span that is not in `SPANS`.
    """
    chosen, chart = span_of(span), (project_connection().alias, span, queue_name, name)
    read_at, remembered = cache.of(chart)
    known = remembered or {}
    guess = chosen.parts(clock())
    first = next((start for start in guess if start not in known), guess[-1])
    now, fresh = _read(chosen, first, queue_name, name)
    parts = chosen.parts(now)
    if any(start < first and start not in known for start in parts):
        # The database's clock is behind that of this process.
        now, fresh = _read(chosen, parts[0], queue_name, name)
    found = {start: fresh.get(start) or known.get(start, NOTHING) for start in parts}
    last = now - SETTLES_AFTER - chosen.part
    cache.remember(chart, read_at, {start: found[start] for start in parts if start <= last})
    starts = chosen.starts(now)
    by_step: defaultdict[datetime, list[Attempts]] = defaultdict(list)
    for start, attempts in found.items():
        by_step[start - (start - EPOCH) % chosen.step].append(attempts)
    steps = [_sum(by_step[start]) for start in starts]
    return Series(span=span, step_seconds=chosen.step_seconds, starts=starts, steps=steps)


def _sum(attempts: Iterable[Attempts]) -> Attempts:
    columns: list[Any] = list(zip(NOTHING, *attempts, strict=True))
    sums: list[Any] = [*map(sum, columns[:4]), *map(merged, columns[4:])]
    return Attempts(*sums)


def _read(
    span: Span, first: datetime, queue_name: str, name: str
) -> tuple[datetime, dict[datetime, Attempts]]:
    """Return the current time, and the parts from the first on that have any attempts."""
    rows = read(
        SERIES, step=span.part, seconds=int(span.part.total_seconds()), first=first,
        first_text=whole_seconds(first), queue_name=queue_name, name=name,
    )  # fmt: skip
    now = loaded(rows[0][0])
    assert now is not None
    parts = {}
    for _, at, succeeded, failed, lost, stopped, run_times, wait_times in rows:
        if (start := loaded(at)) is not None:
            counts = succeeded, failed, lost, stopped
            parts[start] = Attempts(*counts, summed(run_times), summed(wait_times))
    return now, parts
