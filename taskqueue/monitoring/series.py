"""Attempts and their durations over time, from the rollups alone."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from taskqueue.core.histogram import Histogram, quantile
from taskqueue.engine.connections import project_connection
from taskqueue.engine.sqlite.values import clock, loaded
from taskqueue.monitoring.reading import read
from taskqueue.monitoring.rollups import SERIES, SPANS, Span, span_of, summed, whole_seconds

# A step that has been over for so long changes no more: a process writes a row for ten seconds from
# its start (`taskqueue.engine.tally`), and the server ends a transaction that idles.
SETTLES_AFTER = timedelta(minutes=5)
# Seconds after which all steps are read again.
FORGOTTEN_AFTER = 600.0
MOST_CHARTS = 50

T = TypeVar("T")


class ChartCache(Generic[T]):
    """Steps of charts that are over, remembered by this process; thread-safe."""

    def __init__(self) -> None:
        self._charts: dict[Hashable, tuple[float, Mapping[datetime, T]]] = {}

    def of(self, chart: Hashable) -> Mapping[datetime, T]:
        """Return the remembered steps of a chart, by their starts."""
        read_at, steps = self._charts.get(chart, (0.0, {}))
        return steps if steps and time.monotonic() - read_at < FORGOTTEN_AFTER else {}

    def remember(
        self,
        chart: Hashable,
        steps: Mapping[datetime, T],
        *,
        length: timedelta,
        now: datetime,
        is_anew: bool,
    ) -> None:
        """Keep the steps that no longer change; `is_anew`: none was remembered before."""
        before = self._charts.get(chart)
        if not is_anew and before is None:
            return  # Another thread has forgotten it meanwhile.
        if before is None and len(self._charts) >= MOST_CHARTS:
            self.forget()
        read_at = time.monotonic() if is_anew or before is None else before[0]
        last = now - SETTLES_AFTER - length
        self._charts[chart] = read_at, {at: step for at, step in steps.items() if at <= last}

    def forget(self) -> None:
        """Forget all charts."""
        self._charts = {}


__all__ = ["SPANS", "Series", "series"]


@dataclass(frozen=True, kw_only=True)
class Series:
    """Attempts by step, the oldest first; each list is as long as `starts`."""

    span: str
    step_seconds: int
    starts: list[datetime]
    succeeded: list[int]
    failed: list[int]
    lost: list[int]
    stopped: list[int]
    run_times: list[Mapping[int, int]] = field(repr=False)
    wait_times: list[Mapping[int, int]] = field(repr=False)

    @property
    def run_p50(self) -> list[float | None]:
        """Seconds; None where nothing ran."""
        return _quantiles(self.run_times, 0.5)

    @property
    def run_p95(self) -> list[float | None]:
        return _quantiles(self.run_times, 0.95)

    @property
    def wait_p50(self) -> list[float | None]:
        """Seconds between being ready and the start of the body."""
        return _quantiles(self.wait_times, 0.5)

    @property
    def wait_p95(self) -> list[float | None]:
        return _quantiles(self.wait_times, 0.95)

    @property
    def total_succeeded(self) -> int:
        return sum(self.succeeded)

    @property
    def total_failed(self) -> int:
        return sum(self.failed)

    @property
    def total_lost(self) -> int:
        return sum(self.lost)

    @property
    def total_stopped(self) -> int:
        return sum(self.stopped)

    @property
    def total(self) -> int:
        """All attempts that came to an end."""
        return self.total_succeeded + self.total_failed + self.total_lost + self.total_stopped

    @property
    def overall_run_p50(self) -> float | None:
        """Seconds, of the whole span."""
        return quantile(_merged(self.run_times), 0.5)

    @property
    def overall_run_p95(self) -> float | None:
        return quantile(_merged(self.run_times), 0.95)

    @property
    def overall_wait_p50(self) -> float | None:
        return quantile(_merged(self.wait_times), 0.5)

    @property
    def overall_wait_p95(self) -> float | None:
        return quantile(_merged(self.wait_times), 0.95)


class Step(NamedTuple):
    """The outcomes of attempts in one step, or in a part of one; fields as in `Series`."""

    succeeded: int = 0
    failed: int = 0
    lost: int = 0
    stopped: int = 0
    run_times: Mapping[int, int] = MappingProxyType({})
    wait_times: Mapping[int, int] = MappingProxyType({})


NOTHING = Step()
cache: ChartCache[Step] = ChartCache()


def series(span: str, *, queue_name: str = "", name: str = "") -> Series:
    """Return attempts by step, of all or of one queue or name.

    Steps that ended more than five minutes ago may be up to ten minutes old.
    Raises ValueError for a span that is not in `SPANS`.
    """
    chosen, chart = span_of(span), (project_connection().alias, span, queue_name, name)
    known = cache.of(chart)
    guess = chosen.parts(clock())
    first = next((start for start in guess if start not in known), guess[-1])
    now, read_now = _read(chosen, first, {"queue_name": queue_name, "name": name})
    parts = chosen.parts(now)
    if any(start < first and start not in known for start in parts):
        # The database's clock is behind that of this process.
        now, read_now = _read(chosen, parts[0], {"queue_name": queue_name, "name": name})
    found = {start: read_now.get(start) or known.get(start, NOTHING) for start in parts}
    cache.remember(chart, found, length=chosen.part, now=now, is_anew=not known)
    starts = chosen.starts(now)
    columns = map(list, zip(*_steps(chosen, starts, found), strict=True))
    by_name: dict[str, Any] = dict(zip(Step._fields, columns, strict=True))
    return Series(span=span, step_seconds=chosen.step_seconds, starts=starts, **by_name)


def _steps(
    span: Span, starts: Sequence[datetime], parts: Mapping[datetime, Step]
) -> Iterator[Step]:
    """Yield the steps, each the sum of its parts."""
    for start in starts:
        moments = (start + number * span.part for number in range(span.step // span.part))
        of_step = [NOTHING, *(parts[moment] for moment in moments if moment in parts)]
        columns: list[Any] = list(zip(*of_step, strict=True))
        sums: list[Any] = [*map(sum, columns[:4]), *map(_merged, columns[4:])]
        yield Step(*sums)


def _read(
    span: Span, first: datetime, which: Mapping[str, str]
) -> tuple[datetime, dict[datetime, Step]]:
    """Return the moment, and the parts from the first on that have any attempts."""
    by = {"step": span.part, "seconds": int(span.part.total_seconds())}
    rows = read(SERIES, **by, first=first, first_text=whole_seconds(first), **which)
    now = loaded(rows[0][0])
    assert now is not None
    steps = {}
    for _, at, succeeded, failed, lost, stopped, run_times, wait_times in rows:
        if (start := loaded(at)) is not None:
            counts = succeeded, failed, lost, stopped
            steps[start] = Step(*counts, summed(run_times), summed(wait_times))
    return now, steps


def _quantiles(histograms: Sequence[Mapping[int, int]], share: float) -> list[float | None]:
    return [quantile(histogram, share) for histogram in histograms]


def _merged(histograms: Sequence[Mapping[int, int]]) -> Histogram:
    merged = Histogram()
    for histogram in histograms:
        merged.update(histogram)
    return merged
