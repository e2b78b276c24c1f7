"""SQL conditions for tasks that only some workers, or several at once, may claim.

`%(worker)s` is the worker that claims, `{now}` is the database's clock.
"""

from __future__ import annotations

# The failures that count for this worker: for a broadcast only its own, since the last manual
# retry.
OWN_FAILURES = """
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

# Whether a worker that has not had the task may take it now. It begins with the condition of the
# index.
IS_OPEN = """task.route = 1
        AND task.status IN ('ready', 'running')
        AND task.open_slots > 0
        AND (task.status = 'ready' OR task.workers > 1 OR task.broadcast)
        AND (task.expires_at IS NULL OR task.started_at IS NOT NULL OR task.expires_at > {now})
        AND (task.deadline_at IS NULL OR task.deadline_at > {now})
        AND NOT EXISTS (
            SELECT 1
            FROM taskqueue_lease AS own
            WHERE own.task_id = task.id
                AND own.worker_id = %(worker)s
                AND (
                    (own.is_shared AND own.status IN ('running', 'succeeded'))
                    OR own.retry_at > {now}
                )
        )"""
