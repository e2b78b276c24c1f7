"""Finding tasks of several workers that wait in vain, on SQLite, by their own index."""

from __future__ import annotations

from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.sqlite.values import clock, dashed, stored
from taskqueue.engine.statement import fetch

# The `+` keeps SQLite from walking all ids in their order, past all that has finished.
BROADCASTS = """
SELECT id
FROM taskqueue_task
WHERE route = 1
    AND status IN ('ready', 'running')
    AND broadcast
    AND open_slots > 0
    AND +id > %s
ORDER BY +id
LIMIT %s
"""

OVERDUE = """
SELECT id
FROM taskqueue_task
WHERE route = 1
    AND status IN ('ready', 'running')
    AND status = 'running'
    AND (workers > 1 OR broadcast)
    AND open_slots > 0
    AND deadline_at <= %s
LIMIT %s
"""


def broadcasts(connection: BaseDatabaseWrapper, *, after: UUID | None, limit: int) -> list[str]:
    parameters = (after.hex if after else "", limit)
    return [dashed(row[0]) for row in fetch(connection, BROADCASTS, parameters)]


def overdue(connection: BaseDatabaseWrapper, *, limit: int) -> list[str]:
    return [dashed(row[0]) for row in fetch(connection, OVERDUE, (stored(clock()), limit))]
