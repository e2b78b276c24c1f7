"""The statements behind the metrics, in the wording of each database."""

from __future__ import annotations

# One statement, so that one snapshot sees a figure in exactly one of the three. The totals are few
# rows; of rollups only those stand there that are not merged yet, of the last minutes.
_COUNTED = """
SELECT
    'total', kind, label, enqueued, succeeded, failed, lost, stopped, returned,
    tasks_succeeded, tasks_failed, tasks_cancelled, run_seconds, wait_seconds,
    {run_times}, {wait_times}
FROM taskqueue_total
UNION ALL
SELECT
    'rollup', queue_name, name, 0, {sums},
    sum(run_seconds), sum(wait_seconds),
    {join}({run_times}, ','), {join}({wait_times}, ',')
FROM taskqueue_rollup
WHERE resolution = 0
GROUP BY queue_name, name
UNION ALL
SELECT
    'arrival', queue_name, name, {number}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', ''
FROM taskqueue_arrival
GROUP BY queue_name, name
"""
_COUNTS = (
    "succeeded", "failed", "lost", "stopped", "returned",
    "tasks_succeeded", "tasks_failed", "tasks_cancelled",
)  # fmt: skip
COUNTED = {
    "postgresql": _COUNTED.format(
        sums=", ".join(f"sum({column})::bigint" for column in _COUNTS),
        number="sum(number)::bigint",
        join="string_agg",
        run_times="run_times::text",
        wait_times="wait_times::text",
    ),
    "sqlite": _COUNTED.format(
        sums=", ".join(f"sum({column})" for column in _COUNTS),
        number="sum(number)",
        join="group_concat",
        run_times="run_times",
        wait_times="wait_times",
    ),
}

# The first of each status by the index of what waits. PostgreSQL would rather read the primary key,
# expecting to meet enough of the status soon, which millions of other rows may come before: a range
# and an order that begins with the status leave it no other index. SQLite wants the condition of
# the index word by word, and is content with an equality.
_WAITING = """
SELECT '{status}', queue_name, count(*) FROM (
    SELECT queue_name FROM taskqueue_task
    WHERE {is_that} AND status IN ('blocked', 'retrying', 'scheduled')
    ORDER BY status, id LIMIT %(limit)s
) AS {status}
GROUP BY queue_name
"""
_IS_THAT = {
    "postgresql": "status >= '{status}' AND status <= '{status}'",
    "sqlite": "status = '{status}'",
}
WAITING = {
    vendor: "UNION ALL".join(
        _WAITING.format(status=status, is_that=is_that.format(status=status))
        for status in ("blocked", "scheduled", "retrying")
    )
    for vendor, is_that in _IS_THAT.items()
}

SIZES = {
    "postgresql": """
SELECT relname, pg_total_relation_size(oid)
FROM pg_class
WHERE oid = ANY (SELECT to_regclass(name) FROM unnest(%(tables)s::text[]) AS name)
""",
    # Pages are not told apart by table without reading them all.
    "sqlite": """
SELECT 'database', pages.page_count * size.page_size
FROM pragma_page_count AS pages CROSS JOIN pragma_page_size AS size
""",
}
