"""Claim tasks on PostgreSQL that only some workers, or several at once, may take."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine import apart_conditions
from taskqueue.engine.postgresql.claim import CLAIMED, PAUSES
from taskqueue.engine.rows import Candidate
from taskqueue.engine.statement import fetch

# Locks: tasks in the order of the queue, skipping locked ones. Two probes of the index for each
# queue: one for tasks pinned to this worker, one for tasks pinned to none.
CANDIDATES = f"""
SELECT
    {CLAIMED.format(failures=apart_conditions.OWN_FAILURES)},
    task.priority, EXTRACT(epoch FROM task.run_after)::float8,
    task.worker_names IS NOT NULL,
    task.workers > 1 OR task.broadcast
FROM unnest(%(queues)s::text[]) WITH ORDINALITY AS queue (name, place)
CROSS JOIN unnest(ARRAY['', %(worker)s::text]) AS pin (name)
CROSS JOIN LATERAL (
    SELECT *
    FROM taskqueue_task AS task
    WHERE {apart_conditions.IS_OPEN.format(now="clock_timestamp()")}
        AND task.pinned_to = pin.name
        AND task.queue_name = queue.name
        AND task.name <> ALL (%(unknown)s::text[])
        AND task.name <> ALL ({PAUSES})
        AND (task.worker_names IS NULL OR task.worker_names @> to_jsonb(%(worker)s::text))
    ORDER BY task.priority DESC, task.run_after, task.id
    LIMIT %(limit)s
    FOR UPDATE OF task SKIP LOCKED
) AS task
WHERE queue.name <> ALL (ARRAY(
    SELECT name
    FROM taskqueue_queue
    WHERE paused_at IS NOT NULL AND (paused_until IS NULL OR paused_until > clock_timestamp())
))
    AND '' <> ALL ({PAUSES})
ORDER BY queue.place, task.priority DESC, task.worker_names IS NULL, task.run_after, task.id
"""  # noqa: S608  (of constants)

# The id is made as in the ordinary claim.
LEASE = """
INSERT INTO taskqueue_lease (
    id, task_id, worker_id, attempt, status, is_shared, claimed_at, expires_at
)
VALUES (
    ((EXTRACT(epoch FROM clock_timestamp())::bigint - 1735689600) << 22)
        | (nextval('taskqueue_lease_id_seq') & 4194303),
    %s::uuid, %s, %s, 'running', %s, clock_timestamp(), clock_timestamp() + %s::interval
)
RETURNING id
"""


def candidates(
    connection: BaseDatabaseWrapper,
    *,
    worker: str,
    queue_names: Sequence[str],
    unknown: Sequence[str],
    limit: int,
) -> list[Candidate]:
    """Lock tasks that not every worker may take, but this one may; up to `limit` in each queue."""
    parameters = {
        "worker": worker, "queues": list(queue_names), "unknown": list(unknown), "limit": limit,
    }  # fmt: skip
    return list(map(Candidate.of, fetch(connection, CANDIDATES, parameters)))


def insert_lease(
    connection: BaseDatabaseWrapper,
    *,
    task_id: str,
    worker: str,
    attempt: int,
    is_shared: bool,
    duration: timedelta,
) -> int:
    """Insert a running lease for a locked task. Return its id."""
    rows = fetch(connection, LEASE, (task_id, worker, attempt, is_shared, duration))
    return int(rows[0][0])
