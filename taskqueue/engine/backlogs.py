"""Find where a queue's claimable tasks begin, after those that a claim leaves out.

A claim skips tasks of paused, unknown or full definitions one by one. A million of them at the
head of a queue cost it seconds, so a worker looks from time to time where the other tasks begin.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import select
from taskqueue.engine.sqlite.values import loaded
from taskqueue.engine.statement import Statement

PAUSED_DEFINITIONS = Statement.of("""
    SELECT name
    FROM taskqueue_pause
    WHERE name <> '' AND (paused_until IS NULL OR paused_until > {now})
""")
# The priorities of a queue are a loose scan of the claim's index.
_LEVELS = """
    WITH RECURSIVE level (priority) AS (
        SELECT max(priority)
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0 AND queue_name = %(queue_name)s
        UNION ALL
        SELECT (
            SELECT max(priority)
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 0 AND queue_name = %(queue_name)s
                AND priority < level.priority
        )
        FROM level
        WHERE level.priority IS NOT NULL
    )
"""
PRIORITIES = Statement.of(f"""
    {_LEVELS}
    SELECT priority FROM level WHERE priority IS NOT NULL
""")  # noqa: S608  (of constants)
# If nothing else waits, the position of tasks enqueued from now on: two seconds ago, because a
# transaction may take that long to commit.
BEGINNINGS = Statement(
    postgresql=f"""
        {_LEVELS}
        SELECT priority, COALESCE(
            (
                SELECT run_after
                FROM taskqueue_task
                WHERE status = 'ready' AND route = 0 AND queue_name = %(queue_name)s
                    AND priority = level.priority
                    AND name <> ALL (%(left_out)s::text[])
                ORDER BY run_after
                LIMIT 1
            ),
            clock_timestamp() - interval '2 seconds'
        )
        FROM level
        WHERE priority IS NOT NULL
    """,  # noqa: S608  (of constants)
    sqlite=f"""
        {_LEVELS}
        SELECT priority, COALESCE(
            (
                SELECT run_after
                FROM taskqueue_task
                WHERE status = 'ready' AND route = 0 AND queue_name = %(queue_name)s
                    AND priority = level.priority
                    AND name NOT IN (SELECT value FROM json_each(%(left_out)s))
                ORDER BY run_after
                LIMIT 1
            ),
            strftime('%%Y-%%m-%%d %%H:%%M:%%f', %(now)s, '-2 seconds')
        )
        FROM level
        WHERE priority IS NOT NULL
    """,  # noqa: S608  (of constants)
)


def paused_definitions(connection: BaseDatabaseWrapper) -> frozenset[str]:
    """Return the names of the paused definitions."""
    return frozenset(row[0] for row in select(connection, PAUSED_DEFINITIONS))


def priorities(connection: BaseDatabaseWrapper, queue_name: str) -> list[int]:
    """Return the priorities of a queue's ready tasks, the highest first."""
    return [row[0] for row in select(connection, PRIORITIES, queue_name=queue_name)]


def beginnings(
    connection: BaseDatabaseWrapper, queue_name: str, left_out: Collection[str]
) -> dict[int, datetime]:
    """Return by priority when the earliest task that is not left out was due.

    It passes over all left-out tasks before it.
    """
    rows = select(connection, BEGINNINGS, queue_name=queue_name, left_out=sorted(left_out))
    return {row[0]: moment for row in rows if (moment := loaded(row[1])) is not None}
