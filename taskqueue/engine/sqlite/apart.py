"""Finding tasks that only some workers may take, on SQLite. The caller holds the write lock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.rows import Candidate
from taskqueue.engine.sqlite.claim import CLAIMED
from taskqueue.engine.sqlite.values import clock, dashed, stored
from taskqueue.engine.statement import fetch

_OWN_FAILURES = """
    CASE
        WHEN task.broadcast THEN (
            SELECT count(*)
            FROM taskqueue_lease AS own
            WHERE own.task_id = task.id
                AND own.worker_id = %(worker)s
                AND own.status = 'failed'
                AND own.attempt > task.attempts_before_retry
                AND own.retry_at IS NOT NULL
        )
        ELSE task.failures
    END"""
CANDIDATES = f"""
SELECT
    {CLAIMED.format(failures=_OWN_FAILURES)},
    task.priority, julianday(task.run_after) * 86400.0,
    task.worker_names IS NOT NULL,
    task.workers > 1 OR task.broadcast
FROM taskqueue_task AS task
WHERE task.route = 1
    AND task.status IN ('ready', 'running')
    AND task.pinned_to IN ('', %(worker)s)
    AND task.queue_name = %(queue_name)s
    AND task.open_slots > 0
    AND (task.status = 'ready' OR task.workers > 1 OR task.broadcast)
    AND task.name NOT IN (SELECT value FROM json_each(%(unknown)s))
    AND (
        task.worker_names IS NULL
        OR EXISTS (SELECT 1 FROM json_each(task.worker_names) WHERE value = %(worker)s)
    )
    AND (task.expires_at IS NULL OR task.started_at IS NOT NULL OR task.expires_at > %(now)s)
    AND (task.deadline_at IS NULL OR task.deadline_at > %(now)s)
    AND NOT EXISTS (
        SELECT 1
        FROM taskqueue_lease AS own
        WHERE own.task_id = task.id
            AND own.worker_id = %(worker)s
            AND (
                (own.is_shared AND own.status IN ('running', 'succeeded'))
                OR own.retry_at > %(now)s
            )
    )
    AND NOT EXISTS (
        SELECT 1
        FROM taskqueue_queue AS queue
        WHERE queue.name = task.queue_name
            AND queue.paused_at IS NOT NULL
            AND (queue.paused_until IS NULL OR queue.paused_until > %(now)s)
    )
ORDER BY task.priority DESC, task.worker_names IS NULL, task.run_after, task.id
LIMIT %(limit)s
"""  # noqa: S608  (of constants)

LEASE = """
INSERT INTO taskqueue_lease (
    task_id, worker_id, attempt, status, is_shared, claimed_at, expires_at
)
VALUES (%s, %s, %s, 'running', %s, %s, %s)
"""


def candidates(
    connection: BaseDatabaseWrapper,
    *,
    worker: str,
    queue_names: Sequence[str],
    unknown: Sequence[str],
    limit: int,
) -> list[Candidate]:
    parameters = {
        "worker": worker, "unknown": json.dumps(list(unknown)), "now": stored(clock()),
        "limit": limit,
    }  # fmt: skip
    found: list[Candidate] = []
    for queue_name in queue_names:
        rows = fetch(connection, CANDIDATES, {**parameters, "queue_name": queue_name})
        found += [Candidate.of((dashed(row[0]), *row[1:])) for row in rows]
    return found


def insert_lease(
    connection: BaseDatabaseWrapper,
    *,
    task_id: str,
    worker: str,
    attempt: int,
    is_shared: bool,
    duration: timedelta,
) -> int:
    now = clock()
    ends = stored(now + duration)
    with connection.cursor() as cursor:
        cursor.execute(LEASE, (UUID(task_id).hex, worker, attempt, is_shared, stored(now), ends))
        return int(cursor.lastrowid)
