"""Reading rollups: statements that sum them, histograms, the cache and the spans of charts.

Each statement reads the rollups since the first step by their time, and joins the histograms as
stored text, because Python merges them faster than SQL.
"""

from __future__ import annotations

import json
import time
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from taskqueue.core.histogram import Histogram, loaded
from taskqueue.engine.statement import Statement

# A row for each step from the first wanted one, each read by its own range of the index: if all
# were grouped at once, PostgreSQL would sort the histograms on disk. A row without a step if the
# first step is in the future.
_SERIES_POSTGRESQL = """
SELECT
    clock.now, step.starts_at, counted.succeeded, counted.failed, counted.lost, counted.stopped,
    counted.run_times, counted.wait_times
FROM (SELECT statement_timestamp() AS now) AS clock
LEFT JOIN LATERAL generate_series(
    %(first)s::timestamptz, date_bin(%(step)s, clock.now, 'epoch'), %(step)s
) AS step (starts_at) ON true
CROSS JOIN LATERAL (
    SELECT
        COALESCE(sum(succeeded), 0)::bigint AS succeeded,
        COALESCE(sum(failed), 0)::bigint AS failed,
        COALESCE(sum(lost), 0)::bigint AS lost,
        COALESCE(sum(stopped), 0)::bigint AS stopped,
        string_agg(run_times::text, ',') AS run_times,
        string_agg(wait_times::text, ',') AS wait_times
    FROM taskqueue_rollup AS rollup
    WHERE rollup.starts_at >= step.starts_at AND rollup.starts_at < step.starts_at + %(step)s
        AND (%(queue_name)s = '' OR queue_name = %(queue_name)s)
        AND (%(name)s = '' OR name = %(name)s)
) AS counted
"""
# A row for each step that has rollups, and one without a step if none has. In whole seconds,
# because SQLite would round times after the last millisecond of a step into the next step.
_SERIES_SQLITE = """
SELECT
    %(now)s, counted.step, counted.succeeded, counted.failed, counted.lost, counted.stopped,
    counted.run_times, counted.wait_times
FROM (SELECT 1)
LEFT JOIN (
    SELECT
        datetime(
            CAST(strftime('%%s', substr(starts_at, 1, 19)) AS integer)
                / %(seconds)s * %(seconds)s,
            'unixepoch'
        ) AS step,
        sum(succeeded) AS succeeded, sum(failed) AS failed,
        sum(lost) AS lost, sum(stopped) AS stopped,
        group_concat(run_times, ',') AS run_times,
        group_concat(wait_times, ',') AS wait_times
    FROM taskqueue_rollup
    WHERE starts_at >= %(first_text)s
        AND (%(queue_name)s = '' OR queue_name = %(queue_name)s)
        AND (%(name)s = '' OR name = %(name)s)
    GROUP BY step
) AS counted ON true
"""

# Rows for each name: several for the time before a moment, and one for the time after it. In
# chunks, each by a range of the index: if a week was grouped at once, PostgreSQL would read the
# rows of 90 days and sort the histograms on disk. One row without a name if there is none.
_NAMES_POSTGRESQL = """
SELECT
    clock.now, counted.is_open, counted.name, counted.number, counted.failed, counted.run_times,
    counted.wait_times, counted.slowest_seconds, counted.slowest_task_id
FROM (SELECT statement_timestamp() AS now) AS clock
LEFT JOIN LATERAL (
    SELECT chunk.is_open, by_name.*
    FROM (
        SELECT false AS is_open, at AS starts_at, LEAST(at + %(step)s, %(until)s) AS ends_at
        FROM generate_series(
            %(first)s::timestamptz, %(until)s::timestamptz - interval '1 microsecond', %(step)s
        ) AS at
        UNION ALL
        SELECT true, %(until)s::timestamptz, %(ends)s::timestamptz
    ) AS chunk
    CROSS JOIN LATERAL (
        SELECT
            name, sum(succeeded + failed + lost + stopped)::bigint AS number,
            sum(failed + lost)::bigint AS failed,
            string_agg(run_times::text, ',') AS run_times,
            string_agg(wait_times::text, ',') AS wait_times,
            max(slowest_seconds) AS slowest_seconds,
            (array_agg(slowest_task_id ORDER BY slowest_seconds DESC))[1] AS slowest_task_id
        FROM taskqueue_rollup
        WHERE starts_at >= chunk.starts_at AND starts_at < chunk.ends_at
        GROUP BY name
    ) AS by_name
) AS counted ON true
"""
# Next to max() SQLite returns the other columns of the row with the maximum.
_NAMES_SQLITE = """
SELECT
    %(now)s, counted.is_open, counted.name, counted.number, counted.failed, counted.run_times,
    counted.wait_times, counted.slowest_seconds, counted.slowest_task_id
FROM (SELECT 1)
LEFT JOIN (
    SELECT
        starts_at >= %(until_text)s AS is_open, name,
        sum(succeeded + failed + lost + stopped) AS number, sum(failed + lost) AS failed,
        group_concat(run_times, ',') AS run_times,
        group_concat(wait_times, ',') AS wait_times,
        max(slowest_seconds) AS slowest_seconds, slowest_task_id
    FROM taskqueue_rollup
    WHERE starts_at >= %(first_text)s AND starts_at < %(ends_text)s
    GROUP BY name, is_open
) AS counted ON true
"""

SERIES = Statement(postgresql=_SERIES_POSTGRESQL, sqlite=_SERIES_SQLITE)
NAMES = Statement(postgresql=_NAMES_POSTGRESQL, sqlite=_NAMES_SQLITE)


def summed(histograms: str | None) -> Histogram:
    """Return the sum of histograms, stored as JSON and joined by commas."""
    total: dict[str, int] = {}
    for histogram in json.loads(f"[{histograms or ''}]"):
        for bucket, count in histogram.items():
            total[bucket] = total.get(bucket, 0) + count
    return loaded(total)


def merged(histograms: Iterable[Mapping[int, int]]) -> Histogram:
    """Return the sum of histograms."""
    total = Histogram()
    for histogram in histograms:
        total.update(histogram)
    return total


# Rollups older than this no longer change: a process writes a row for ten seconds from its start
# (`taskqueue.engine.tally`), and the server ends idle transactions.
SETTLES_AFTER = timedelta(minutes=5)
# Seconds after which everything is read again.
FORGOTTEN_AFTER = 600.0
MOST_CHARTS = 50

T = TypeVar("T")


class ChartCache(Generic[T]):
    """A thread-safe cache in this process, by chart, of rollups that no longer change."""

    def __init__(self) -> None:
        self._charts: dict[Hashable, tuple[float, T]] = {}

    def of(self, chart: Hashable) -> tuple[float, T | None]:
        """Return when the chart was first read, and the cached value; None if it must be read."""
        now = time.monotonic()
        read_at, remembered = self._charts.get(chart, (now, None))
        return (read_at, remembered) if now - read_at < FORGOTTEN_AFTER else (now, None)

    def remember(self, chart: Hashable, read_at: float, value: T) -> None:
        """Cache what no longer changes of a chart that was first read at that time."""
        if chart not in self._charts and len(self._charts) >= MOST_CHARTS:
            self.forget()
        self._charts[chart] = read_at, value

    def forget(self) -> None:
        """Empty the cache."""
        self._charts = {}


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_PART = timedelta(minutes=15)
# The most parts of a step, even if the step is longer than this many parts.
MOST_PARTS = 8


@dataclass(frozen=True)
class Span:
    """A number of steps, of which the last is not over yet."""

    step_seconds: int
    steps: int

    @property
    def step(self) -> timedelta:
        """The length of a step."""
        return timedelta(seconds=self.step_seconds)

    def starts(self, now: datetime) -> list[datetime]:
        """Return the starts of the steps, at multiples of their length."""
        last = EPOCH + (now - EPOCH) // self.step * self.step
        return [last - number * self.step for number in reversed(range(self.steps))]

    @property
    def part(self) -> timedelta:
        """The length of the parts in which rollups are read; a step of a long span has several.

        So only the current part of an unfinished step must be read again.
        """
        return min(self.step, max(LONGEST_PART, self.step / MOST_PARTS))

    def parts(self, now: datetime) -> list[datetime]:
        """Return the starts of the parts, up to the current one."""
        first = self.starts(now)[0]
        return [first + number * self.part for number in range((now - first) // self.part + 1)]


def whole_seconds(moment: datetime) -> str:
    """Return the start of a step as text that SQLite can compare.

    Django stores a whole second without a fraction; with one it would sort after that.
    """
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


SPANS = {
    "hour": Span(step_seconds=60, steps=60),
    "day": Span(step_seconds=900, steps=96),
    "week": Span(step_seconds=7200, steps=84),
    "month": Span(step_seconds=8 * 3600, steps=90),
    "quarter": Span(step_seconds=24 * 3600, steps=90),
}


def span_of(name: str) -> Span:
    """Return the span of that name. Raises ValueError for an unknown name."""
    try:
        return SPANS[name]
    except KeyError:
        raise ValueError(f"{name!r} is not a span. Choose from {', '.join(SPANS)}.") from None
