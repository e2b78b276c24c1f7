"""How much was done, and how long it took, step by step: from the rollups alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from taskqueue.engine.connections import project_connection
from taskqueue.engine.sqlite.values import stored
from taskqueue.engine.statement import fetch
from taskqueue.engine.wording import wording_for
from taskqueue.histogram import Histogram, loaded, quantile
from taskqueue.monitoring.spans import SPANS, span_of

__all__ = ["SPANS", "Series", "series"]

# Reads the rollups since the first step, by their time. A row for each step that has any.
POSTGRESQL = """
WITH chosen AS MATERIALIZED (
    SELECT
        floor(EXTRACT(epoch FROM starts_at - %s) / %s)::int AS step,
        succeeded, failed, lost, stopped, run_times, wait_times
    FROM taskqueue_rollup
    WHERE starts_at >= %s AND queue_name IN (%s, queue_name)
        AND name IN (%s, name)
), run AS (
    SELECT step, json_object_agg(bucket, number) AS times
    FROM (
        SELECT step, each.key AS bucket, sum(each.value::bigint)::bigint AS number
        FROM chosen
        CROSS JOIN LATERAL jsonb_each_text(run_times) AS each
        GROUP BY step, each.key
    ) AS summed
    GROUP BY step
), wait AS (
    SELECT step, json_object_agg(bucket, number) AS times
    FROM (
        SELECT step, each.key AS bucket, sum(each.value::bigint)::bigint AS number
        FROM chosen
        CROSS JOIN LATERAL jsonb_each_text(wait_times) AS each
        GROUP BY step, each.key
    ) AS summed
    GROUP BY step
), counted AS (
    SELECT
        step,
        sum(succeeded)::bigint AS succeeded, sum(failed)::bigint AS failed,
        sum(lost)::bigint AS lost, sum(stopped)::bigint AS stopped
    FROM chosen
    GROUP BY step
)
SELECT step, succeeded, failed, lost, stopped, run.times::text, wait.times::text
FROM counted
LEFT JOIN run USING (step)
LEFT JOIN wait USING (step)
"""


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
    run_times: list[Histogram] = field(repr=False)
    wait_times: list[Histogram] = field(repr=False)

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
    connection = project_connection()
    starts = chosen.starts(wording_for(connection).now(connection))
    since: Any = starts[0]
    if connection.vendor == "sqlite":
        since = stored(since)
    rows = fetch(
        connection,
        POSTGRESQL,
        (since, chosen.step_seconds, since, queue_name, name),
    )
    found = {row[0]: row[1:] for row in rows}
    none = (0, 0, 0, 0, None, None)
    columns = list(zip(*(found.get(place, none) for place in range(chosen.steps)), strict=True))
    return Series(
        span=span,
        step_seconds=chosen.step_seconds,
        starts=starts,
        succeeded=list(columns[0]),
        failed=list(columns[1]),
        lost=list(columns[2]),
        stopped=list(columns[3]),
        run_times=list(map(_histogram, columns[4])),
        wait_times=list(map(_histogram, columns[5])),
    )


def _histogram(text: str | None) -> Histogram:
    return loaded(json.loads(text)) if text else Histogram()


def _quantiles(histograms: Sequence[Mapping[int, int]], share: float) -> list[float | None]:
    return [quantile(histogram, share) for histogram in histograms]


def _merged(histograms: Sequence[Histogram]) -> Histogram:
    return sum(histograms, Histogram())
