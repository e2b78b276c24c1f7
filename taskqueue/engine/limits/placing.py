"""Give places to tasks that already run in a queue when it gets a limit."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import execute
from taskqueue.engine.statement import Statement

# A lease has no place if it was claimed before its queue was limited, or by a claim that was under
# way at that moment: an ordinary claim locks nothing that would tell it of limits.
#
# Locks: leases by id, as a record does.
TAKE_PLACES = Statement(
    postgresql="""
        WITH held AS MATERIALIZED (
            SELECT lease.id, queue.limiter_id
            FROM taskqueue_lease AS lease
            JOIN taskqueue_task AS task ON task.id = lease.task_id
            JOIN taskqueue_queue AS queue ON queue.name = task.queue_name
            WHERE queue.limiter_id IS NOT NULL AND %(queue_name)s IN ('', queue.name)
                AND lease.finished_at IS NULL AND NOT lease.is_shared AND lease.status = 'running'
                AND NOT EXISTS (
                    SELECT 1
                    FROM taskqueue_slot
                    WHERE limiter_id = queue.limiter_id AND lease_id = lease.id
                )
            ORDER BY lease.id
            FOR UPDATE OF lease
        ), running AS (
            UPDATE taskqueue_lease AS lease
            SET is_limited = true
            FROM held
            WHERE lease.id = held.id
            RETURNING lease.id, held.limiter_id
        )
        INSERT INTO taskqueue_slot (limiter_id, lease_id)
        SELECT limiter_id, id FROM running
        ON CONFLICT DO NOTHING
    """,
    sqlite="""
        INSERT INTO taskqueue_slot (limiter_id, lease_id)
        SELECT queue.limiter_id, lease.id
        FROM taskqueue_queue AS queue
        CROSS JOIN taskqueue_lease AS lease
        CROSS JOIN taskqueue_task AS task
        WHERE queue.limiter_id IS NOT NULL AND %(queue_name)s IN ('', queue.name)
            AND lease.status = 'running' AND NOT lease.is_shared
            AND task.id = lease.task_id AND task.queue_name = queue.name
        ON CONFLICT DO NOTHING
    """,
)
MARK_LIMITED = Statement.of("""
    UPDATE taskqueue_lease
    SET is_limited = true
    WHERE status = 'running' AND NOT is_limited AND EXISTS (
        SELECT 1 FROM taskqueue_slot WHERE lease_id = taskqueue_lease.id
    )
""")
ALL_QUEUES = ""


def take_places(connection: BaseDatabaseWrapper, queue_name: str = ALL_QUEUES) -> int:
    """Give running leases of limited queues their places, in the caller's transaction.

    Return how many.
    """
    taken = execute(connection, TAKE_PLACES, queue_name=queue_name)
    if taken and connection.vendor == "sqlite":
        execute(connection, MARK_LIMITED)
    return taken
