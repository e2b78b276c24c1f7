"""How long tasks of each name take, and how many fail: from the rollups alone."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from taskqueue.histogram import quantile
from taskqueue.monitoring.histograms import summed
from taskqueue.monitoring.reading import read
from taskqueue.monitoring.rollup_statements import NAMES
from taskqueue.monitoring.spans import span_of


@dataclass(frozen=True, kw_only=True)
class NamePerformance:
    """Attempts at tasks of one name; durations in seconds."""

    name: str
    count: int
    failed: int
    """Those that failed or were lost."""
    failure_rate: float
    """From 0 to 1."""
    run_p50: float | None
    run_p95: float | None
    wait_p50: float | None
    wait_p95: float | None
    slowest_seconds: float
    slowest_task_id: UUID | None


def performance(span: str) -> list[NamePerformance]:
    """Each name that ran within the span, the most frequent first.

    Raises ValueError for a span that is not in `SPANS`.
    """
    return [_performance(*row) for row in read(NAMES, **span_of(span).parameters())]


def _performance(
    name: str,
    count: int,
    failed: int,
    run_times: str,
    wait_times: str,
    slowest_seconds: float,
    slowest_task_id: UUID | str | None,
) -> NamePerformance:
    run, wait = summed(run_times), summed(wait_times)
    return NamePerformance(
        name=name,
        count=count,
        failed=failed,
        failure_rate=failed / count,
        run_p50=_at_most(slowest_seconds, quantile(run, 0.5)),
        run_p95=_at_most(slowest_seconds, quantile(run, 0.95)),
        wait_p50=quantile(wait, 0.5),
        wait_p95=quantile(wait, 0.95),
        slowest_seconds=slowest_seconds,
        slowest_task_id=UUID(slowest_task_id)
        if isinstance(slowest_task_id, str)
        else slowest_task_id,
    )


def _at_most(slowest: float, seconds: float | None) -> float | None:
    """A histogram tells a bucket's place: no quantile is longer than what took longest."""
    return seconds if seconds is None or not slowest else min(seconds, slowest)
