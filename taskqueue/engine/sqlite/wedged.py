"""Finding and marking attempts that seem wedged, on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.rows import Quiet
from taskqueue.engine.sqlite.values import clock, dashed, stored
from taskqueue.engine.statement import change, fetch

# Reads only. The index of running leases bounds it; lines are read for the few that are quiet.
QUIET = """
WITH quiet AS MATERIALIZED (
    SELECT
        id, task_id, worker_id, attempt, wedged_at,
        COALESCE(progressed_at, started_at) AS alive_at,
        (
            SELECT max(logged_at)
            FROM taskqueue_tasklog AS line
            WHERE line.task_id = lease.task_id AND line.attempt = lease.attempt
        ) AS logged_at
    FROM taskqueue_lease AS lease
    WHERE status = 'running'
        AND (wedged_at IS NOT NULL OR COALESCE(progressed_at, started_at) < %s)
)
SELECT
    quiet.id, quiet.task_id, task.name, quiet.worker_id, quiet.attempt,
    (julianday(%s) - julianday(
        max(quiet.alive_at, COALESCE(quiet.logged_at, quiet.alive_at))
    )) * 86400.0,
    (julianday(%s) - julianday(quiet.wedged_at)) * 86400.0
FROM quiet
CROSS JOIN taskqueue_task AS task
WHERE task.id = quiet.task_id
    AND (quiet.wedged_at IS NOT NULL OR quiet.logged_at IS NULL OR quiet.logged_at < %s)
ORDER BY quiet.id
"""

# Reads only: the newest leases, by their key, then their tasks, by theirs.
RECENT_RUNS = """
SELECT task.name, (julianday(newest.finished_at) - julianday(newest.started_at)) * 86400.0
FROM (
    SELECT task_id, status, started_at, finished_at
    FROM taskqueue_lease
    ORDER BY id DESC
    LIMIT %s
) AS newest
CROSS JOIN taskqueue_task AS task
WHERE task.id = newest.task_id
    AND newest.status = 'succeeded'
    AND newest.started_at IS NOT NULL
    AND task.name IN (SELECT value FROM json_each(%s))
"""

SET_WEDGED = """
UPDATE taskqueue_lease
SET wedged_at = %s
WHERE id = %s AND status = 'running' AND wedged_at IS NULL
"""
CLEAR_WEDGED = """
UPDATE taskqueue_lease
SET wedged_at = NULL
WHERE id = %s AND status = 'running' AND wedged_at IS NOT NULL
"""


def quiet_attempts(connection: BaseDatabaseWrapper, *, least: timedelta) -> list[Quiet]:
    moment = clock()
    now, before = stored(moment), stored(moment - least)
    found = fetch(connection, QUIET, (before, now, now, before))
    return [Quiet(row[0], dashed(row[1]), *row[2:]) for row in found]


def recent_runs(
    connection: BaseDatabaseWrapper, *, names: Sequence[str], sample: int
) -> list[tuple[str, float]]:
    found = fetch(connection, RECENT_RUNS, (sample, json.dumps(list(names))))
    return [(name, seconds) for name, seconds in found]


def set_wedged(connection: BaseDatabaseWrapper, lease_id: int) -> bool:
    return change(connection, SET_WEDGED, (stored(clock()), lease_id)) > 0


def clear_wedged(connection: BaseDatabaseWrapper, lease_id: int) -> bool:
    return change(connection, CLEAR_WEDGED, (lease_id,)) > 0
