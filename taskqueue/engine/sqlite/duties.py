"""What keeps tasks moving on SQLite: promoting, ending what is overdue, pruning."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.rows import DutyForecast, Ended
from taskqueue.engine.sqlite.values import clock, dashed, loaded, retention_of, stored
from taskqueue.engine.statement import change

# Reads only: the write lock is taken only where there is something to promote.
OUTLOOK = """
SELECT
    (
        SELECT min(run_after) FROM taskqueue_task
        WHERE status IN ('retrying', 'scheduled')
    ),
    (
        SELECT min(deadline_at) FROM taskqueue_task
        WHERE deadline_at IS NOT NULL
            AND status IN ('blocked', 'ready', 'retrying', 'scheduled')
    ),
    (
        SELECT min(expires_at) FROM taskqueue_task
        WHERE expires_at IS NOT NULL AND started_at IS NULL
            AND status IN ('blocked', 'ready', 'retrying', 'scheduled')
    ),
    (SELECT min(expires_at) FROM taskqueue_lease WHERE status = 'running'),
    EXISTS (
        SELECT 1
        FROM taskqueue_task
        WHERE route = 1
            AND status IN ('ready', 'running')
            AND pinned_to IN ('', (SELECT name FROM taskqueue_worker WHERE id = %s))
            AND (open_slots > 0 OR (broadcast AND workers = 0))
            AND (status = 'ready' OR workers > 1 OR broadcast)
    ),
    EXISTS (
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
        SELECT 1
        FROM lane
        WHERE queue_name IS NOT NULL AND queue_name NOT IN (
            SELECT name
            FROM taskqueue_queue
            WHERE paused_at IS NOT NULL AND (paused_until IS NULL OR paused_until > %s)
        )
    ),
    (
        SELECT min(next_at)
        FROM taskqueue_schedule
        WHERE next_at IS NOT NULL AND is_enabled AND is_enabled = 1 AND removed_at IS NULL
    ),
    EXISTS (
        SELECT 1
        FROM taskqueue_occurrence AS occurrence
        WHERE occurrence.status = 'enqueued'
            AND NOT EXISTS (
                SELECT 1
                FROM taskqueue_task AS task
                WHERE task.id = occurrence.task_id
                    AND task.status NOT IN ('cancelled', 'failed', 'succeeded')
            )
    ),
    EXISTS (SELECT 1 FROM taskqueue_operation WHERE finished_at IS NULL)
"""

RANK = """
SELECT count(*)
FROM taskqueue_worker
WHERE status = 'running' AND id < %s
    AND (julianday(%s) - julianday(seen_at)) * 86400.0 < lease_seconds
"""

PROMOTE = """
UPDATE taskqueue_task
SET status = 'ready', ready_at = %s
WHERE id IN (
    SELECT id FROM taskqueue_task
    WHERE status IN ('retrying', 'scheduled') AND run_after <= %s
    ORDER BY run_after
    LIMIT %s
)
"""

PICK_OVERDUE = """
SELECT id, retention, unique_until, holds_unique_key, unique_for
FROM taskqueue_task
WHERE deadline_at IS NOT NULL AND deadline_at <= %s
    AND status IN ('blocked', 'ready', 'retrying', 'scheduled')
LIMIT %s
"""

PICK_EXPIRED = """
SELECT id, retention, unique_until, holds_unique_key, unique_for
FROM taskqueue_task
WHERE expires_at IS NOT NULL AND expires_at <= %s AND started_at IS NULL
    AND status IN ('blocked', 'ready', 'retrying', 'scheduled')
LIMIT %s
"""

END = """
UPDATE taskqueue_task
SET status = %s,
    error_class = %s,
    error_message = %s,
    finished_at = %s,
    prune_after = %s,
    holds_unique_key = %s
WHERE id = %s
RETURNING id, queue_name, name, status
"""
OVERDUE = (
    "failed",
    "taskqueue.exceptions.DeadlineExceeded",
    "The deadline passed before the task ended.",
)
EXPIRED = "cancelled", "", "Not started before it expired."

# A holder of a unique key stays; its retention is looked at again when the key is free.
PICK_OLD = """
SELECT id FROM taskqueue_task
WHERE prune_after IS NOT NULL AND prune_after <= %s
    AND NOT (holds_unique_key AND (unique_until IS NULL OR unique_until > %s))
ORDER BY prune_after
LIMIT %s
"""
DELETE_OLD = (
    "DELETE FROM taskqueue_tasklog WHERE task_id IN (SELECT value FROM json_each(%s))",
    "DELETE FROM taskqueue_lease WHERE task_id IN (SELECT value FROM json_each(%s))",
    "DELETE FROM taskqueue_task WHERE id IN (SELECT value FROM json_each(%s))",
)

# `at` is in no index: the first rows tell.
PRUNE_AUDIT = """
DELETE FROM taskqueue_audit
WHERE id IN (SELECT id FROM taskqueue_audit ORDER BY id LIMIT %s) AND at < %s
"""


def promote(connection: BaseDatabaseWrapper, *, worker_id: int, limit: int) -> DutyForecast:
    moment = clock()
    with connection.cursor() as cursor:
        cursor.execute(OUTLOOK, (worker_id, stored(moment)))
        seen = cursor.fetchone()
        promoted = 0
        due_in = _until(seen[0], moment)
        if due_in is not None and due_in <= 0:
            cursor.execute(PROMOTE, (stored(moment), stored(moment), limit))
            promoted = cursor.rowcount
            cursor.execute(OUTLOOK, (worker_id, stored(moment)))
            seen = cursor.fetchone()
        cursor.execute(RANK, (worker_id, stored(moment)))
        (rank,) = cursor.fetchone()
    due, deadline, expires, expiry, has_apart, has_ready, schedule = seen[:7]
    has_ended_runs, has_operations = map(bool, seen[7:])
    ends = [end for end in (_until(deadline, moment), _until(expires, moment)) if end is not None]
    return DutyForecast(
        promoted=promoted,
        next_due=_until(due, moment),
        next_end=min(ends, default=None),
        next_expiry=_until(expiry, moment),
        has_ready=bool(has_ready),
        rank=rank,
        has_apart=bool(has_apart),
        next_schedule=_until(schedule, moment),
        has_ended_runs=has_ended_runs,
        has_operations=has_operations,
    )


def _until(text: str | None, moment: datetime) -> float | None:
    then = loaded(text)
    return None if then is None else (then - moment).total_seconds()


def end_overdue(
    connection: BaseDatabaseWrapper,
    *,
    limit: int,
    failed: timedelta | None,
    cancelled: timedelta | None,
) -> list[Ended]:
    moment = clock()
    now = stored(moment)
    ended: list[Ended] = []
    with connection.cursor() as cursor:
        for pick, end, kept_for in (
            (PICK_OVERDUE, OVERDUE, failed),
            (PICK_EXPIRED, EXPIRED, cancelled),
        ):
            cursor.execute(pick, (now, limit))
            for task_id, *columns in cursor.fetchall():
                retention = retention_of(*columns)
                kept_until = stored(retention.prune_after(moment, kept_for))
                cursor.execute(END, (*end, now, kept_until, retention.keeps_key, task_id))
                ended += [Ended(dashed(row[0]), *row[1:]) for row in cursor.fetchall()]
    return ended


def prune(connection: BaseDatabaseWrapper, *, limit: int) -> int:
    now = stored(clock())
    with connection.cursor() as cursor:
        cursor.execute(PICK_OLD, (now, now, limit))
        old = json.dumps([row[0] for row in cursor.fetchall()])
        for statement in DELETE_OLD:
            cursor.execute(statement, (old,))
        return int(cursor.rowcount)


def prune_audit(connection: BaseDatabaseWrapper, *, limit: int, kept: timedelta) -> int:
    return change(connection, PRUNE_AUDIT, (limit, stored(clock() - kept)))
