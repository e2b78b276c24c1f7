"""Reports of running attempts, on PostgreSQL: log lines, starts and progress."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.rows import LogLine, Note
from taskqueue.engine.statement import change

INSERT_LOGS = """
INSERT INTO taskqueue_tasklog (task_id, attempt, logged_at, level, logger, message)
SELECT
    lease.task_id, lease.attempt, clock_timestamp() - line.age * interval '1 second',
    line.level, line.logger, line.message
FROM unnest(%s::bigint[], %s::float8[], %s::int[], %s::text[], %s::text[])
    WITH ORDINALITY AS line (lease_id, age, level, logger, message, place)
JOIN LATERAL (
    SELECT id, task_id, attempt
    FROM taskqueue_lease
    WHERE id = line.lease_id AND finished_at IS NULL
    LIMIT 1
) AS lease ON lease.id = line.lease_id
ORDER BY line.place
"""

# Locks: leases by id, then their tasks.
WRITE_NOTES = """
WITH held AS MATERIALIZED (
    SELECT
        lease.id, lease.task_id, note.progress, note.message, note.detail::jsonb AS detail,
        COALESCE(
            lease.started_at, clock_timestamp() - note.started * interval '1 second'
        ) AS started_at
    FROM (
        SELECT *
        FROM unnest(%s::bigint[], %s::float8[], %s::float8[], %s::text[], %s::text[])
            AS note (lease_id, started, progress, message, detail)
        ORDER BY lease_id
    ) AS note
    JOIN LATERAL (
        SELECT id, task_id, started_at
        FROM taskqueue_lease
        WHERE id = note.lease_id AND finished_at IS NULL
        LIMIT 1
        FOR UPDATE
    ) AS lease ON lease.id = note.lease_id
), noted AS (
    UPDATE taskqueue_lease AS lease
    SET started_at = held.started_at,
        progress = COALESCE(held.progress, lease.progress),
        progress_message = COALESCE(held.message, lease.progress_message),
        progress_detail = CASE
            WHEN held.progress IS NULL THEN lease.progress_detail ELSE held.detail
        END,
        progressed_at = CASE
            WHEN held.progress IS NULL THEN lease.progressed_at ELSE clock_timestamp()
        END
    FROM held
    WHERE lease.id = ANY (ARRAY[held.id])
)
UPDATE taskqueue_task AS task
SET started_at = held.started_at
FROM held
WHERE task.id = ANY (ARRAY[held.task_id]) AND task.started_at IS NULL
"""


def insert_logs(connection: BaseDatabaseWrapper, lines: Sequence[LogLine]) -> None:
    """Store captured lines of attempts whose lease still runs."""
    change(connection, INSERT_LOGS, tuple(map(list, zip(*lines, strict=True))))


def write_notes(connection: BaseDatabaseWrapper, notes: Sequence[Note]) -> None:
    """Store starts and progress of attempts whose lease still runs."""
    change(connection, WRITE_NOTES, tuple(map(list, zip(*notes, strict=True))))
