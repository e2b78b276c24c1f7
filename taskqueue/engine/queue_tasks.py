"""Count the tasks of one queue by status, exactly or up to a number of rows.

Only the ready tasks of a queue have an index. So each part of the statement reads an index of a
status in order, up to a number of rows, and counts those of the queue.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.states import TaskStatus
from taskqueue.engine.dialect import select
from taskqueue.engine.statement import Statement


class Found(NamedTuple):
    """How many tasks of the queue were found, and whether all rows were checked."""

    number: int = 0
    is_whole: bool = True


def _part(status: str, rows: str) -> str:
    return f"""
        SELECT
            '{status}', COALESCE(sum(CASE WHEN queue_name = %(queue_name)s THEN 1 END), 0), count(*)
        FROM ({rows} LIMIT %(most)s) AS looked_at
    """  # noqa: S608  (of constants)


def _waiting(status: str) -> str:
    # SQLite needs the condition of the index word by word. PostgreSQL, given the condition twice,
    # would expect far too few rows.
    return f"""SELECT queue_name FROM taskqueue_task
        WHERE status = '{status}'{{waiting}} ORDER BY id DESC"""  # noqa: S608


def _ended(status: str) -> str:
    return f"""SELECT queue_name FROM taskqueue_task
        WHERE status = '{status}' AND finished_at IS NOT NULL ORDER BY finished_at DESC"""  # noqa: S608


# The tasks of each status, read by one index each; those that not every worker may take are
# separate.
_ROWS: dict[str, tuple[str, ...]] = {
    **{status: (_waiting(status),) for status in ("blocked", "scheduled", "retrying")},
    "ready": (
        """SELECT queue_name FROM taskqueue_task
        WHERE status = 'ready' AND route = 0 AND queue_name = %(queue_name)s
        ORDER BY queue_name, priority DESC""",
        """SELECT queue_name FROM taskqueue_task
        WHERE status = 'ready' AND route = 2 ORDER BY partition""",
        """SELECT queue_name FROM taskqueue_task
        WHERE route = 1 AND status IN ('ready', 'running') AND status = 'ready'
        ORDER BY pinned_to""",
    ),
    "running": (
        """SELECT queue_name FROM taskqueue_task
        WHERE route = 1 AND status IN ('ready', 'running') AND status = 'running'
        ORDER BY pinned_to""",
        """SELECT CASE WHEN task.route <> 1 AND task.status = 'running' THEN task.queue_name
        END AS queue_name
        FROM (
            SELECT task_id FROM taskqueue_lease
            WHERE status = 'running' ORDER BY worker_id LIMIT %(most)s
        ) AS held
        JOIN taskqueue_task AS task ON task.id = held.task_id""",
    ),
    **{status: (_ended(status),) for status in ("succeeded", "failed", "cancelled")},
}


def _statement(statuses: Collection[str]) -> Statement:
    parts = [_part(status, rows) for status in statuses for rows in _ROWS[status]]
    return _worded(" UNION ALL ".join(parts))


def _worded(text: str) -> Statement:
    more = " AND status IN ('blocked', 'retrying', 'scheduled')"
    return Statement(
        postgresql=text.replace("{waiting}", ""), sqlite=text.replace("{waiting}", more)
    )


UNFINISHED = ("ready", "scheduled", "retrying", "blocked", "running")
COUNTS = _statement([status.value for status in TaskStatus])
UNFINISHED_COUNTS = _statement(UNFINISHED)
# Of the queues that were deleted first, those that have unfinished tasks. The rows are read once
# for all queues, and not at all if no queue is deleted. No EXISTS, because PostgreSQL may read
# every ready task into a hash table for it.
_LOOKED_AT = " UNION ALL ".join(
    f"SELECT queue_name FROM ({rows} LIMIT %(most)s) AS looked_at"  # noqa: S608  (of constants)
    for status in UNFINISHED
    for rows in _ROWS[status]
    if "%(queue_name)s" not in rows
)
DELETED_WITH_TASKS = _worded(f"""
    SELECT name
    FROM (
        SELECT name
        FROM taskqueue_queue
        WHERE deleted_at IS NOT NULL
        ORDER BY deleted_at
        LIMIT %(queues)s
    ) AS deleted
    WHERE (
        SELECT 1
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0 AND queue_name = deleted.name
        ORDER BY priority DESC
        LIMIT 1
    ) = 1
        OR name IN ({_LOOKED_AT})
""")  # noqa: S608  (of constants)


def counts_of(connection: BaseDatabaseWrapper, queue_name: str, *, most: int) -> dict[str, Found]:
    """Return the number of a queue's tasks by status, among the newest rows of each status."""
    return _counted(connection, COUNTS, queue_name, most)


def unfinished_in(connection: BaseDatabaseWrapper, queue_name: str, *, most: int) -> Found:
    """Return the number of unfinished tasks of a queue, among the newest rows."""
    found = _counted(connection, UNFINISHED_COUNTS, queue_name, most).values()
    return Found(sum(each.number for each in found), all(each.is_whole for each in found))


def deleted_with_tasks(connection: BaseDatabaseWrapper, *, queues: int, most: int) -> set[str]:
    """Return the deleted queues that have unfinished tasks, among the newest rows."""
    rows = select(connection, DELETED_WITH_TASKS, queues=queues, most=most)
    return {name for (name,) in rows}


def _counted(
    connection: BaseDatabaseWrapper, statement: Statement, queue_name: str, most: int
) -> dict[str, Found]:
    found: dict[str, Found] = {}
    for status, number, looked_at in select(
        connection, statement, queue_name=queue_name, most=most
    ):
        before = found.get(status, Found())
        is_whole = before.is_whole and looked_at < most
        found[status] = Found(before.number + int(number), is_whole)
    return found
