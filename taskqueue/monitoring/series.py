"""Attempts and their durations over time, from the rollups alone."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from taskqueue.core.histogram import Histogram, quantile
from taskqueue.engine.connections import project_connection
from taskqueue.engine.sqlite.values import clock, loaded, stored
from taskqueue.monitoring.reading import read
from taskqueue.monitoring.rollups import SERIES, SPANS, Span, span_of, summed, whole_seconds

SETTLES_AFTER = timedelta(minutes=5)
"""A step that has been over for so long changes no more: a process writes a row for ten seconds
from its start (`taskqueue.engine.tally`), and the server ends a transaction that idles."""
FORGOTTEN_AFTER = 600.0
"""Seconds after which all steps are read anew, whatever has been written to them meanwhile."""
MOST_CHARTS = 50

T = TypeVar("T")


class Settled(Generic[T]):
    """What the steps of some charts came to; safe to be used by several threads."""

    def __init__(self) -> None:
        self._charts: dict[Hashable, tuple[float, Mapping[datetime, T]]] = {}

    def of(self, chart: Hashable) -> Mapping[datetime, T]:
        """What is remembered of a chart, by the starts of its steps."""
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
        """Keep those that are settled; `is_anew`: none of them was remembered before."""
        before = self._charts.get(chart)
        if not is_anew and before is None:
            return  # Another thread has forgotten it meanwhile.
        if before is None and len(self._charts) >= MOST_CHARTS:
            self.forget()
        read_at = time.monotonic() if is_anew or before is None else before[0]
        last = now - SETTLES_AFTER - length
        self._charts[chart] = read_at, {at: step for at, step in steps.items() if at <= last}

    def forget(self) -> None:
        """Remember nothing."""
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
    """The outcomes of attempts in one step, or in a part of one."""

    succeeded: int = 0
    failed: int = 0
    lost: int = 0
    stopped: int = 0
    run_times: Mapping[int, int] = MappingProxyType({})
    wait_times: Mapping[int, int] = MappingProxyType({})


NOTHING = Step()
settled: Settled[Step] = Settled()


def series(span: str, *, queue_name: str = "", name: str = "") -> Series:
    """What attempts came to, of one queue or name where these are given.

    Steps that ended more than five minutes ago may be told as they were up to ten minutes ago.
    Raises ValueError for a span that is not in `SPANS`.
    """
    chosen, chart = span_of(span), (project_connection().alias, span, queue_name, name)
    known = settled.of(chart)
    guess = chosen.parts(clock())
    first = next((start for start in guess if start not in known), guess[-1])
    now, read_now = _read(chosen, first, {"queue_name": queue_name, "name": name})
    parts = chosen.parts(now)
    if any(start < first and start not in known for start in parts):
        # The database's clock is behind that of this process.
        now, read_now = _read(chosen, parts[0], {"queue_name": queue_name, "name": name})
    found = {start: read_now.get(start) or known.get(start, NOTHING) for start in parts}
    settled.remember(chart, found, length=chosen.part, now=now, is_anew=not known)
    starts = chosen.starts(now)
    columns = list(zip(*_steps(chosen, starts, found), strict=True))
    return Series(
        span=span,
        step_seconds=chosen.step_seconds,
        starts=starts,
        succeeded=list(columns[0]),
        failed=list(columns[1]),
        lost=list(columns[2]),
        stopped=list(columns[3]),
        run_times=list(columns[4]),
        wait_times=list(columns[5]),
    )


def _steps(
    span: Span, starts: Sequence[datetime], parts: Mapping[datetime, Step]
) -> Iterator[Step]:
    """The steps that the parts make up."""
    for start in starts:
        moments = (start + number * span.part for number in range(span.step // span.part))
        of_it = [parts[moment] for moment in moments if moment in parts]
        yield Step(
            succeeded=sum(part.succeeded for part in of_it),
            failed=sum(part.failed for part in of_it),
            lost=sum(part.lost for part in of_it),
            stopped=sum(part.stopped for part in of_it),
            run_times=_merged([part.run_times for part in of_it]),
            wait_times=_merged([part.wait_times for part in of_it]),
        )


def _read(
    span: Span, first: datetime, which: Mapping[str, str]
) -> tuple[datetime, dict[datetime, Step]]:
    """The moment, and the parts from the first on, as far as there is anything in them."""
    by = {"step": span.part, "seconds": int(span.part.total_seconds()), "now": stored(clock())}
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
