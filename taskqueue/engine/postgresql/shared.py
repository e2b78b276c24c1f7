"""Finding tasks of several workers that wait in vain, on PostgreSQL, by their own index."""

from __future__ import annotations

from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.statement import fetch

# Locks nothing. Materialized, for in the order of ids it would walk past all that has finished.
BROADCASTS = """
WITH waiting AS MATERIALIZED (
    SELECT id
    FROM taskqueue_task
    WHERE route = 1
        AND status IN ('ready', 'running')
        AND broadcast
        AND open_slots > 0
)
SELECT id::text
FROM waiting
WHERE waiting.id > %s::uuid
ORDER BY waiting.id
LIMIT %s
"""

# Locks nothing: who ends them looks again under their locks.
OVERDUE = """
SELECT id::text
FROM taskqueue_task
WHERE route = 1
    AND status IN ('ready', 'running')
    AND status = 'running'
    AND (workers > 1 OR broadcast)
    AND open_slots > 0
    AND deadline_at <= clock_timestamp()
LIMIT %s
"""


def broadcasts(connection: BaseDatabaseWrapper, *, after: UUID | None, limit: int) -> list[str]:
    rows = fetch(connection, BROADCASTS, (after or UUID(int=0), limit))
    return [row[0] for row in rows]


def overdue(connection: BaseDatabaseWrapper, *, limit: int) -> list[str]:
    return [row[0] for row in fetch(connection, OVERDUE, (limit,))]
