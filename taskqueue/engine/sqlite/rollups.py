"""Writing rollups, and taking what has arrived, on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.rows import RollupRow
from taskqueue.engine.sqlite.values import clock, stored
from taskqueue.engine.statement import change, fetch

WRITE_ROLLUP = """
INSERT INTO taskqueue_rollup (
    id, queue_name, name,
    succeeded, failed, lost, stopped, returned, tasks_succeeded, tasks_failed, tasks_cancelled,
    run_seconds, run_times, wait_seconds, wait_times, slowest_seconds, slowest_task_id,
    resolution, starts_at
)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, 0, %s)
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

# Two statements under one lock; ids rise.
COUNT_ARRIVALS = """
SELECT queue_name, name, sum(number), count(*), max(id)
FROM (SELECT id, queue_name, name, number FROM taskqueue_arrival ORDER BY id LIMIT %s)
GROUP BY queue_name, name
"""
DELETE_ARRIVALS = "DELETE FROM taskqueue_arrival WHERE id <= %s"


def write_rollups(connection: BaseDatabaseWrapper, rows: Sequence[RollupRow]) -> None:
    now = stored(clock())
    with connection.cursor() as cursor:
        for row in rows:
            slowest = row.slowest_task_id
            own = row._replace(
                id=UUID(row.id).hex, slowest_task_id=None if slowest is None else UUID(slowest).hex
            )
            cursor.execute(WRITE_ROLLUP, (*own, now))


def take_arrivals(
    connection: BaseDatabaseWrapper, *, limit: int
) -> list[tuple[str, str, int, int]]:
    counts = fetch(connection, COUNT_ARRIVALS, (limit,))
    if counts:
        change(connection, DELETE_ARRIVALS, (max(row[4] for row in counts),))
    return [(row[0], row[1], row[2], row[3]) for row in counts]
