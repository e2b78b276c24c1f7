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

# The fields of `Claimed` between the id of the lease and the last.
CLAIMED = """
    id, name, attempt, args, kwargs,
    CASE WHEN options = '{{}}' THEN '' ELSE options END,
    CASE WHEN metadata = '{{}}' THEN '' ELSE metadata END,
    {failures}, max_attempts, crashes,
    lease_duration / 1000000.0,
    (julianday(deadline_at) - julianday(%(now)s)) * 86400.0,
    queue_name,
    ping_interval / 1000000.0,
    (julianday(%(now)s) - julianday(ready_at)) * 86400.0"""

CLAIM = f"""
UPDATE taskqueue_task
SET status = 'running',
    attempt = attempt + 1,
    holds_unique_key = holds_unique_key AND unique_for <> 'started'
WHERE id = %(id)s AND status = 'ready'
RETURNING {CLAIMED.format(failures="failures")}
"""  # noqa: S608  (of constants)

LEASE = """
INSERT INTO taskqueue_lease (
    task_id, worker_id, attempt, status, claimed_at, expires_at
)
VALUES (%s, %s, %s, 'running', %s, %s)
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
                cursor.execute(CLAIM, {"id": task_id, "now": now})
                row = cursor.fetchone()
                claim = Claimed._make((0, dashed(row[0]), *row[1:], False))
                duration = lease_duration
                if claim.lease_seconds is not None:
                    duration = timedelta(seconds=claim.lease_seconds)
                ends_at = stored(moment + duration)
                cursor.execute(LEASE, (task_id, worker, claim.attempt, now, ends_at))
                claimed.append(claim._replace(lease_id=cursor.lastrowid))
    return claimed


def earliest_ready(
    connection: BaseDatabaseWrapper, queue_names: Sequence[str]
) -> dict[str, datetime]:
    return {}
