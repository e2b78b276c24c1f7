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

# The first of each status by the index of what waits. SQLite wants its condition word by word.
_WAITING = "UNION ALL".join(
    f"""
SELECT '{status}', queue_name, count(*) FROM (
    SELECT queue_name FROM taskqueue_task
    WHERE status = '{status}'{{condition}}
    ORDER BY id LIMIT %(limit)s
) AS {status}
GROUP BY queue_name
"""  # noqa: S608  (of constants)
    for status in ("blocked", "scheduled", "retrying")
)
WAITING = {
    "postgresql": _WAITING.format(condition=""),
    "sqlite": _WAITING.format(
        condition=" AND status IN ('blocked', 'retrying', 'scheduled')",
    ),
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
