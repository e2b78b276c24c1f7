"""Promoting, ending overdue tasks and pruning on PostgreSQL."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.retention import KEEPS_KEY, PRUNE_AFTER, EndPolicy
from taskqueue.engine.rows import Ended
from taskqueue.engine.statement import Moment, Statement, change, fetch

# Locks: due tasks by run_after, skipping locked ones. `statement_timestamp()` lets the index
# find them; the statement is a transaction of its own.
PROMOTE = """
WITH due AS MATERIALIZED (
    SELECT id
    FROM taskqueue_task
    WHERE status IN ('retrying', 'scheduled') AND run_after <= statement_timestamp()
    ORDER BY run_after
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), promoted AS (
    UPDATE taskqueue_task AS task
    SET status = 'ready', ready_at = clock_timestamp()
    FROM due
    WHERE task.id = due.id
    RETURNING 1
)
SELECT (SELECT count(*) FROM promoted)
"""

# Locks: overdue tasks, then expired ones, in the order of their indexes, skipping locked ones;
# running ones are their worker's to end.
END_OVERDUE = f"""
WITH overdue AS MATERIALIZED (
    SELECT id
    FROM taskqueue_task
    WHERE deadline_at IS NOT NULL
        AND deadline_at <= statement_timestamp()
        AND status IN ('blocked', 'ready', 'retrying', 'scheduled')
    ORDER BY deadline_at
    LIMIT %s
    FOR UPDATE SKIP LOCKED
), expired AS MATERIALIZED (
    SELECT id
    FROM taskqueue_task
    WHERE expires_at IS NOT NULL
        AND expires_at <= statement_timestamp()
        AND started_at IS NULL
        AND status IN ('blocked', 'ready', 'retrying', 'scheduled')
    ORDER BY expires_at
    LIMIT %s
    FOR UPDATE SKIP LOCKED
), ended AS (
    SELECT
        id, 'failed' AS status, 'taskqueue.exceptions.DeadlineExceeded' AS error_class,
        'The deadline passed before the task ended.' AS error_message, %s::interval AS kept
    FROM overdue
    UNION ALL
    SELECT id, 'cancelled', '', 'Not started before it expired.', %s::interval
    FROM expired
    WHERE id NOT IN (SELECT id FROM overdue)
)
UPDATE taskqueue_task AS task
SET status = ended.status,
    error_class = ended.error_class,
    error_message = ended.error_message,
    finished_at = statement_timestamp(),
    prune_after = {PRUNE_AFTER.format(finished_at="statement_timestamp()", kept_for="ended.kept")},
    holds_unique_key = {KEEPS_KEY}
FROM ended
WHERE task.id = ended.id
RETURNING task.id::text, task.queue_name, task.name, task.status
"""  # noqa: S608  (of constants)

# Locks: finished tasks by the end of their retention, skipping locked ones.
PRUNE = """
WITH old AS MATERIALIZED (
    SELECT id
    FROM taskqueue_task
    WHERE prune_after IS NOT NULL AND prune_after <= statement_timestamp()
    ORDER BY prune_after
    LIMIT %s
    FOR UPDATE SKIP LOCKED
), lines AS (
    DELETE FROM taskqueue_tasklog AS line USING old WHERE line.task_id = old.id
), leases AS (
    DELETE FROM taskqueue_lease AS lease USING old WHERE lease.task_id = old.id
)
DELETE FROM taskqueue_task AS task USING old WHERE task.id = old.id
"""


def promote(
    connection: BaseDatabaseWrapper, looks: tuple[Statement, ...], *, worker_id: int, limit: int
) -> tuple[Any, ...]:
    """Make due tasks ready; how many, then what each look saw: for moments, seconds until."""
    columns = "".join(map(_column, looks))
    (row,) = fetch(connection, PROMOTE + columns, {"limit": limit, "worker": worker_id})
    return row


@cache
def _column(look: Statement) -> str:
    if isinstance(look, Moment):
        return f", EXTRACT(epoch FROM ({look.postgresql}) - clock_timestamp())::float8"
    return f", ({look.postgresql})"


def end_overdue(connection: BaseDatabaseWrapper, *, limit: int, policy: EndPolicy) -> list[Ended]:
    """Fail tasks past their deadline and cancel those that expired, where none runs."""
    parameters = limit, limit, policy.keep_failed, policy.keep_cancelled
    rows = fetch(connection, END_OVERDUE, parameters)
    return [Ended(*row) for row in rows]


def prune(connection: BaseDatabaseWrapper, *, limit: int) -> int:
    """Delete finished tasks whose retention is over, with their leases and lines."""
    return change(connection, PRUNE, (limit,))
