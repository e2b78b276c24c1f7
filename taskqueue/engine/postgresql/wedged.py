"""Finding and marking attempts that seem wedged, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.rows import Quiet
from taskqueue.engine.statement import change, fetch

# Locks nothing. The index of running leases bounds it; lines are read for the few that are quiet.
QUIET = """
SELECT
    lease.id, lease.task_id::text, task.name, lease.worker_id, lease.attempt,
    EXTRACT(epoch FROM clock.now - GREATEST(
        lease.started_at, lease.progressed_at, line.logged_at
    ))::float8,
    EXTRACT(epoch FROM clock.now - lease.wedged_at)::float8
FROM taskqueue_lease AS lease
CROSS JOIN (SELECT clock_timestamp() AS now) AS clock
JOIN taskqueue_task AS task ON task.id = lease.task_id
CROSS JOIN LATERAL (
    SELECT max(logged_at) AS logged_at
    FROM taskqueue_tasklog
    WHERE task_id = lease.task_id AND attempt = lease.attempt
) AS line
WHERE lease.status = 'running'
    AND (
        lease.wedged_at IS NOT NULL
        OR GREATEST(lease.started_at, lease.progressed_at) < clock.now - %s::interval
    )
    AND (
        lease.wedged_at IS NOT NULL
        OR line.logged_at IS NULL
        OR line.logged_at < clock.now - %s::interval
    )
ORDER BY lease.id
"""

# Locks nothing. The newest leases, by their key; OFFSET keeps the planner from joining a whole
# table of tasks to them.
RECENT_RUNS = """
WITH newest AS MATERIALIZED (
    SELECT task_id, status, started_at, finished_at
    FROM taskqueue_lease
    ORDER BY id DESC
    LIMIT %s
)
SELECT task.name, EXTRACT(epoch FROM newest.finished_at - newest.started_at)::float8
FROM newest
CROSS JOIN LATERAL (
    SELECT name FROM taskqueue_task WHERE id = newest.task_id OFFSET 0
) AS task
WHERE newest.status = 'succeeded' AND newest.started_at IS NOT NULL AND task.name = ANY(%s)
"""

# Locks: the one lease.
SET_WEDGED = """
UPDATE taskqueue_lease
SET wedged_at = clock_timestamp()
WHERE id = %s AND status = 'running' AND wedged_at IS NULL
"""
CLEAR_WEDGED = """
UPDATE taskqueue_lease
SET wedged_at = NULL
WHERE id = %s AND status = 'running' AND wedged_at IS NOT NULL
"""


def quiet_attempts(connection: BaseDatabaseWrapper, *, least: timedelta) -> list[Quiet]:
    return [Quiet._make(row) for row in fetch(connection, QUIET, (least, least))]


def recent_runs(
    connection: BaseDatabaseWrapper, *, names: Sequence[str], sample: int
) -> list[tuple[str, float]]:
    return [(name, seconds) for name, seconds in fetch(connection, RECENT_RUNS, (sample, names))]


def set_wedged(connection: BaseDatabaseWrapper, lease_id: int) -> bool:
    return change(connection, SET_WEDGED, (lease_id,)) > 0


def clear_wedged(connection: BaseDatabaseWrapper, lease_id: int) -> bool:
    return change(connection, CLEAR_WEDGED, (lease_id,)) > 0
