"""Figures that are only read when needed: arrival rates, and durations of runs."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

from taskqueue.core.histogram import quantile
from taskqueue.engine.sqlite.values import stored
from taskqueue.engine.statement import Statement
from taskqueue.monitoring.performance import performance
from taskqueue.monitoring.reading import read
from taskqueue.monitoring.rollups import summed

# The most tasks that are counted of each queue; if more came recently, no growth is reported.
MOST_CAME = 20_000
# The windows for counting; the longer is that of a queue's attempts.
WINDOW, LATELY = timedelta(minutes=15), timedelta(minutes=5)
# How many runs a usual time needs.
ENOUGH = 5

# By the claim's index: within a priority, recent tasks are together, at the end.
_CAME_SINCE = """(
            SELECT count(*)
            FROM (
                SELECT 1
                FROM taskqueue_task AS task
                WHERE task.status = 'ready' AND task.route = 0
                    AND task.queue_name = lane.queue_name AND task.priority = lane.priority
                    AND task.run_after >= {moment}
                ORDER BY task.run_after
                LIMIT %(most)s
            ) AS counted
        )"""
_CAME = """
WITH RECURSIVE lane (queue_name, priority) AS (
    SELECT queue.name, (
        SELECT max(priority)
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0 AND queue_name = queue.name
    )
    FROM {names} AS queue{columns}
    UNION ALL
    SELECT queue_name, (
        SELECT max(priority)
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0
            AND queue_name = lane.queue_name AND priority < lane.priority
    )
    FROM lane
    WHERE lane.priority IS NOT NULL
), came AS (
    SELECT
        queue_name,
        {since} AS number,
        {lately} AS lately
    FROM lane
    WHERE priority IS NOT NULL
)
SELECT queue_name, CAST(sum(number) AS bigint), CAST(sum(lately) AS bigint)
FROM came
GROUP BY queue_name
"""
CAME = Statement(
    postgresql=_CAME.format(
        names="json_array_elements_text(%(queues)s::json)",
        columns=" (name)",
        since=_CAME_SINCE.format(moment="%(since)s::timestamptz"),
        lately=_CAME_SINCE.format(moment="%(lately)s::timestamptz"),
    ),
    sqlite=_CAME.format(
        names="(SELECT value AS name FROM json_each(%(queues)s))",
        columns="",
        since=_CAME_SINCE.format(moment="%(since_text)s"),
        lately=_CAME_SINCE.format(moment="%(lately_text)s"),
    ),
)
# There are few rows, which are never deleted.
RUN_TIMES = Statement.of("""
    SELECT label, CAST(run_times AS text)
    FROM taskqueue_total
    WHERE kind = 'name' AND label {in names text}
""")


class Came(NamedTuple):
    """The tasks that wait in a queue, and those of them that became due within the last minutes."""

    within_window: int
    lately: int


def tasks_that_came(queues: Collection[str], now: datetime) -> dict[str, Came]:
    """Return by queue how many of the waiting tasks came recently, in one statement."""
    if not queues:
        return {}
    since, lately = now - WINDOW, now - LATELY
    rows = read(
        CAME, queues=json.dumps(sorted(queues)), most=MOST_CAME, since=since, lately=lately,
        since_text=stored(since), lately_text=stored(lately),
    )  # fmt: skip
    return {queue: Came(int(number), int(recent)) for queue, number, recent in rows}


def usual_times(names: Collection[str]) -> dict[str, float]:
    """Return the run time p95 of names for which enough runs are known.

    All runs since the beginning count; for names that the totals merge with others, those of the
    last week.
    """
    if not names:
        return {}
    rows = read(RUN_TIMES, names=sorted(names))
    found = {name: summed(times) for name, times in rows}
    usual = {
        name: seconds
        for name, times in found.items()
        if times.total() >= ENOUGH and (seconds := quantile(times, 0.95)) is not None
    }
    if missing := set(names) - usual.keys():
        usual |= {
            each.name: each.run_p95
            for each in performance("week")
            if each.name in missing and each.run_p95 is not None and each.count >= ENOUGH
        }
    return usual
