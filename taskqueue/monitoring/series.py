"""How much was done, and how long it took, step by step: from the rollups alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from taskqueue.engine.sqlite.values import loaded
from taskqueue.histogram import Histogram, quantile
from taskqueue.monitoring.histograms import summed
from taskqueue.monitoring.reading import read
from taskqueue.monitoring.rollup_statements import SERIES
from taskqueue.monitoring.spans import SPANS, span_of

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


def series(span: str, *, queue_name: str = "", name: str = "") -> Series:
    """What attempts came to, of one queue or name where these are given.

    Raises ValueError for a span that is not in `SPANS`.
    """
    chosen = span_of(span)
    rows = read(SERIES, **chosen.parameters(), queue_name=queue_name, name=name)
    now = loaded(rows[0][0])
    assert now is not None
    starts = chosen.starts(now)
    found = {loaded(row[1]): row[2:] for row in rows}
    nothing = (0, 0, 0, 0, None, None)
    columns = list(zip(*(found.get(start, nothing) for start in starts), strict=True))
    return Series(
        span=span,
        step_seconds=chosen.step_seconds,
        starts=starts,
        succeeded=list(columns[0]),
        failed=list(columns[1]),
        lost=list(columns[2]),
        stopped=list(columns[3]),
        run_times=list(map(summed, columns[4])),
        wait_times=list(map(summed, columns[5])),
    )


def _quantiles(histograms: Sequence[Mapping[int, int]], share: float) -> list[float | None]:
    return [quantile(histogram, share) for histogram in histograms]


def _merged(histograms: Sequence[Mapping[int, int]]) -> Histogram:
    merged = Histogram()
    for histogram in histograms:
        merged.update(histogram)
    return merged
