"""Prune finished tasks beyond the number that their definition keeps (`keep_last`)."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import execute, select
from taskqueue.engine.statement import Fact, Statement

# By the first entry of that index, so that no plan reads the tasks.
HAS_COUNTED = Fact.of("""
    (
        SELECT min(name) FROM taskqueue_task WHERE keep_last IS NOT NULL AND finished_at IS NOT NULL
    ) IS NOT NULL
""")
# The names with such a number, found one after the other in an index that has only their tasks. If
# tasks of a name have different numbers, that of the task that ended last applies: it comes from
# the newest code.
NAMES = Statement.of("""
WITH RECURSIVE kept (name) AS (
    SELECT (
        SELECT min(name)
        FROM taskqueue_task
        WHERE keep_last IS NOT NULL AND finished_at IS NOT NULL
    )
    UNION ALL
    SELECT (
        SELECT min(name)
        FROM taskqueue_task
        WHERE keep_last IS NOT NULL AND finished_at IS NOT NULL AND name > kept.name
    )
    FROM kept
    WHERE kept.name IS NOT NULL
)
SELECT kept.name, (
    SELECT keep_last
    FROM taskqueue_task
    WHERE keep_last IS NOT NULL AND finished_at IS NOT NULL AND name = kept.name
    ORDER BY finished_at DESC, id DESC
    LIMIT 1
)
FROM kept
WHERE kept.name IS NOT NULL
""")

# The tasks that ended first, if more have ended than are kept. A holder of a unique key is kept
# until the key is free.
_SURPLUS = """
    SELECT id
    FROM taskqueue_task
    WHERE keep_last IS NOT NULL AND finished_at IS NOT NULL AND name = %(name)s
        AND (finished_at, id) <= (
            SELECT finished_at, id
            FROM taskqueue_task
            WHERE keep_last IS NOT NULL AND finished_at IS NOT NULL AND name = %(name)s
            ORDER BY finished_at DESC, id DESC
            LIMIT 1 OFFSET %(keep_last)s
        )
        AND (prune_after IS NULL OR prune_after > {now})
        AND NOT (holds_unique_key AND (unique_until IS NULL OR unique_until > {now}))
    ORDER BY finished_at, id
    LIMIT %(limit)s
"""
SURPLUS = Statement.of(_SURPLUS)
# Locks: finished tasks of one name by their ends, skipping locked ones.
MARK = Statement(
    postgresql=Statement.of(f"""
        UPDATE taskqueue_task
        SET prune_after = {{now}}
        WHERE id = ANY (ARRAY({_SURPLUS} {{skip_locked}}))
    """).postgresql,  # noqa: S608  (of constants)
    sqlite=Statement.of(f"""
        UPDATE taskqueue_task
        SET prune_after = {{now}}
        WHERE id IN ({_SURPLUS})
    """).sqlite,  # noqa: S608  (of constants)
)


def mark_surplus(connection: BaseDatabaseWrapper, *, limit: int) -> int:
    """Make surplus tasks due for pruning now. Return how many, at most `limit`."""
    marked = 0
    for name, keep_last in select(connection, NAMES):
        if marked < limit:
            most = limit - marked
            marked += execute(connection, MARK, name=name, keep_last=keep_last, limit=most)
    return marked


def count_surplus(connection: BaseDatabaseWrapper, *, limit: int) -> int:
    """Count surplus tasks, up to `limit` of each name."""
    return sum(
        len(select(connection, SURPLUS, name=name, keep_last=keep_last, limit=limit))
        for name, keep_last in select(connection, NAMES)
    )
