"""The statements that sum rollups up, in the wording of each database.

Each reads the rollups since the first step, by their time, and gives the histograms as they are
stored, one behind the other: to take them apart here costs more than in Python.
"""

from __future__ import annotations

# A row for each step from the first that is wanted, read by a range of the index of its own: to
# group them all, PostgreSQL would sort the histograms, on disk. One without a step where the first
# is yet to come.
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
# A row for each step that has any, and one without a step where none has.
# SQLite would round what is past the last millisecond of a step into the next: whole seconds.
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

# A row for each name. The slowest is looked for apart, in rows that are narrow enough to sort.
_NAMES_POSTGRESQL = """
SELECT
    counted.name, counted.number, counted.failed, counted.run_times, counted.wait_times,
    slowest.slowest_seconds, slowest.slowest_task_id
FROM (
    SELECT
        name, sum(succeeded + failed + lost + stopped)::bigint AS number,
        sum(failed + lost)::bigint AS failed,
        string_agg(run_times::text, ',') AS run_times,
        string_agg(wait_times::text, ',') AS wait_times
    FROM taskqueue_rollup
    WHERE starts_at >= (
        SELECT date_bin(%(step)s, statement_timestamp(), 'epoch') - %(rest)s::interval
    )
    GROUP BY name
) AS counted
JOIN (
    SELECT DISTINCT ON (name) name, slowest_seconds, slowest_task_id
    FROM taskqueue_rollup
    WHERE starts_at >= (
        SELECT date_bin(%(step)s, statement_timestamp(), 'epoch') - %(rest)s::interval
    )
    ORDER BY name, slowest_seconds DESC
) AS slowest ON slowest.name = counted.name
WHERE counted.number > 0
ORDER BY counted.number DESC, counted.name
"""
# Beside max() SQLite gives the other columns of the row that has it.
_NAMES_SQLITE = """
SELECT
    counted.name, counted.number, counted.failed, counted.run_times, counted.wait_times,
    slowest.slowest_seconds, slowest.slowest_task_id
FROM (
    SELECT
        name, sum(succeeded + failed + lost + stopped) AS number, sum(failed + lost) AS failed,
        group_concat(run_times, ',') AS run_times,
        group_concat(wait_times, ',') AS wait_times
    FROM taskqueue_rollup
    WHERE starts_at >= %(since)s
    GROUP BY name
) AS counted
JOIN (
    SELECT name, max(slowest_seconds) AS slowest_seconds, slowest_task_id
    FROM taskqueue_rollup
    WHERE starts_at >= %(since)s
    GROUP BY name
) AS slowest ON slowest.name = counted.name
WHERE counted.number > 0
ORDER BY counted.number DESC, counted.name
"""

SERIES = {"postgresql": _SERIES_POSTGRESQL, "sqlite": _SERIES_SQLITE}
NAMES = {"postgresql": _NAMES_POSTGRESQL, "sqlite": _NAMES_SQLITE}
