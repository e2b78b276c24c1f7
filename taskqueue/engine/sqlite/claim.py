"""Claiming tasks on SQLite. The caller holds the write lock, so nothing needs to be skipped.

SQLite uses a partial index only where a statement repeats its condition word by word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.rows import NO_FLOORS, Claimed
from taskqueue.engine.sqlite.values import clock, dashed, stored

PICK = """
SELECT id
FROM taskqueue_task
WHERE status = 'ready'
    AND route = 0
    AND queue_name = %s
    AND queue_name NOT IN (
        SELECT name
        FROM taskqueue_queue
        WHERE paused_at IS NOT NULL AND (paused_until IS NULL OR paused_until > %s)
    )
    AND name NOT IN (SELECT value FROM json_each(%s))
    AND (expires_at IS NULL OR started_at IS NOT NULL OR expires_at > %s)
    AND (deadline_at IS NULL OR deadline_at > %s)
ORDER BY priority DESC, run_after, id
LIMIT %s
"""

CLAIM = """
UPDATE taskqueue_task
SET status = 'running',
    attempt = attempt + 1,
    holds_unique_key = holds_unique_key AND unique_for <> 'started'
WHERE id = %s AND status = 'ready'
RETURNING
    id, name, attempt, args, kwargs, options, metadata, failures, max_attempts, crashes,
    lease_duration,
    (julianday(deadline_at) - julianday(%s)) * 86400.0, queue_name, ping_interval,
    (julianday(%s) - julianday(ready_at)) * 86400.0
"""

LEASE = """
INSERT INTO taskqueue_lease (
    task_id, worker_id, attempt, status, claimed_at, expires_at
)
VALUES (%s, %s, %s, 'running', %s, %s)
"""

READY_QUEUES = """
WITH RECURSIVE lane (queue_name) AS (
    SELECT min(queue_name)
    FROM taskqueue_task
    WHERE status = 'ready' AND route = 0
    UNION ALL
    SELECT (
        SELECT min(queue_name)
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0
            AND queue_name > lane.queue_name
    )
    FROM lane
    WHERE lane.queue_name IS NOT NULL
)
SELECT queue_name
FROM lane
WHERE queue_name IS NOT NULL AND queue_name NOT IN (
    SELECT name
    FROM taskqueue_queue
    WHERE paused_at IS NOT NULL AND (paused_until IS NULL OR paused_until > %(now)s)
)
"""


def claim(
    connection: BaseDatabaseWrapper,
    *,
    worker: str,
    quotas: Sequence[tuple[str, int]],
    unknown: Sequence[str],
    lease_duration: timedelta,
    floors: Mapping[str, datetime] = NO_FLOORS,
) -> list[Claimed]:
    moment = clock()
    now = stored(moment)
    claimed = []
    with connection.cursor() as cursor:
        for queue_name, size in quotas:
            cursor.execute(PICK, (queue_name, now, json.dumps(list(unknown)), now, now, size))
            for (task_id,) in cursor.fetchall():
                cursor.execute(CLAIM, (task_id, now, now))
                row = cursor.fetchone()
                lease_seconds = None if row[10] is None else row[10] / 1e6
                duration = lease_duration
                if lease_seconds is not None:
                    duration = timedelta(seconds=lease_seconds)
                cursor.execute(LEASE, (task_id, worker, row[2], now, stored(moment + duration)))
                claimed.append(
                    Claimed(
                        lease_id=cursor.lastrowid,
                        task_id=dashed(task_id),
                        name=row[1],
                        attempt=row[2],
                        args=row[3],
                        kwargs=row[4],
                        options="" if row[5] == "{}" else row[5],
                        metadata="" if row[6] == "{}" else row[6],
                        failures=row[7],
                        max_attempts=row[8],
                        crashes=row[9],
                        lease_seconds=lease_seconds,
                        deadline_in=row[11],
                        queue_name=row[12],
                        ping_seconds=None if row[13] is None else row[13] / 1e6,
                        waited=row[14],
                    )
                )
    return claimed


def ready_queues(connection: BaseDatabaseWrapper) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(READY_QUEUES, {"now": stored(clock())})
        return [row[0] for row in cursor.fetchall()]


def earliest_ready(
    connection: BaseDatabaseWrapper, queue_names: Sequence[str]
) -> dict[str, datetime]:
    return {}
