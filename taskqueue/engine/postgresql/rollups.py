"""Writing rollups, and taking what has arrived, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.rows import RollupRow
from taskqueue.engine.statement import change, fetch

# Locks: the rows of this process, which nobody else writes.
WRITE_ROLLUPS = """
INSERT INTO taskqueue_rollup (
    id, resolution, starts_at, queue_name, name,
    succeeded, failed, lost, stopped, returned, tasks_succeeded, tasks_failed, tasks_cancelled,
    run_seconds, run_times, wait_seconds, wait_times, slowest_seconds, slowest_task_id
)
SELECT
    part.id, 0, clock_timestamp(), part.queue_name, part.name,
    succeeded, failed, lost, stopped, returned, tasks_succeeded, tasks_failed, tasks_cancelled,
    run_seconds, run_times::jsonb, wait_seconds, wait_times::jsonb, slowest_seconds,
    slowest_task_id
FROM unnest(
    %s::uuid[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
    %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::float8[], %s::text[],
    %s::float8[], %s::text[], %s::float8[], %s::uuid[]
) AS part (
    id, queue_name, name, succeeded, failed, lost, stopped, returned, tasks_succeeded,
    tasks_failed, tasks_cancelled, run_seconds, run_times, wait_seconds, wait_times,
    slowest_seconds, slowest_task_id
)
ON CONFLICT (id) DO UPDATE
SET succeeded = EXCLUDED.succeeded,
    failed = EXCLUDED.failed,
    lost = EXCLUDED.lost,
    stopped = EXCLUDED.stopped,
    returned = EXCLUDED.returned,
    tasks_succeeded = EXCLUDED.tasks_succeeded,
    tasks_failed = EXCLUDED.tasks_failed,
    tasks_cancelled = EXCLUDED.tasks_cancelled,
    run_seconds = EXCLUDED.run_seconds,
    run_times = EXCLUDED.run_times,
    wait_seconds = EXCLUDED.wait_seconds,
    wait_times = EXCLUDED.wait_times,
    slowest_seconds = EXCLUDED.slowest_seconds,
    slowest_task_id = EXCLUDED.slowest_task_id
"""

# Locks: any so many rows, skipping locked ones, found by their place for want of an index.
TAKE_ARRIVALS = """
WITH taken AS (
    DELETE FROM taskqueue_arrival
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM taskqueue_arrival LIMIT %s FOR UPDATE SKIP LOCKED
    ))
    RETURNING queue_name, name, number
)
SELECT queue_name, name, sum(number)::bigint, count(*) FROM taken GROUP BY queue_name, name
"""


def write_rollups(connection: BaseDatabaseWrapper, rows: Sequence[RollupRow]) -> None:
    """Insert the rows, or set the figures of those that are there."""
    change(connection, WRITE_ROLLUPS, tuple(map(list, zip(*rows, strict=True))))


def take_arrivals(
    connection: BaseDatabaseWrapper, *, limit: int
) -> list[tuple[str, str, int, int]]:
    """Delete up to so many arrivals: queues, names, how many tasks, and how many rows."""
    return [(row[0], row[1], row[2], row[3]) for row in fetch(connection, TAKE_ARRIVALS, (limit,))]
