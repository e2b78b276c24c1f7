"""Reading tasks that not every worker may take, and tasks whose names no worker knows."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from taskqueue.core.retries import class_path
from taskqueue.engine.dialect import as_uuid
from taskqueue.engine.sqlite.values import loaded
from taskqueue.engine.statement import Statement
from taskqueue.exceptions import UnknownTask
from taskqueue.monitoring.reading import read

COLUMNS = "id, queue_name, status, run_after, worker_names, workers, broadcast, open_slots"
# Two halves, so that many tasks of several workers do not hide those of named ones. SQLite needs
# the condition of the index word by word.
_APART = f"""
SELECT {COLUMNS}, 0
FROM (
    SELECT {COLUMNS}
    FROM taskqueue_task
    WHERE status IN ('ready', 'running') AND route = 1 AND pinned_to = ''
    ORDER BY pinned_to, queue_name
    LIMIT %(most)s
) AS free
UNION ALL
SELECT {COLUMNS}, 1
FROM (
    SELECT {COLUMNS}
    FROM taskqueue_task
    WHERE status IN ('ready', 'running') AND route = 1 AND pinned_to > ''
    ORDER BY pinned_to, queue_name
    LIMIT %(most)s
) AS pinned
"""  # noqa: S608  (of constants)
APART = Statement(
    postgresql=_APART.replace("worker_names", "worker_names::text AS worker_names"), sqlite=_APART
)


class WaitingTask(NamedTuple):
    """A task for several workers, or for named ones."""

    id: UUID
    queue_name: str
    status: str
    run_after: datetime
    worker_names: list[str] | None
    workers: int
    broadcast: bool
    open_slots: int


class Waiting(NamedTuple):
    """The first of these tasks, and whether there may be more."""

    tasks: list[WaitingTask]
    is_capped: bool


def read_waiting(*, most: int) -> Waiting:
    """Return the first tasks for several workers, and for a named worker, in one statement."""
    rows = read(APART, most=most)
    pinned = sum(row[-1] for row in rows)
    return Waiting([_waiting_task(row) for row in rows], max(pinned, len(rows) - pinned) >= most)


def _waiting_task(row: tuple[Any, ...]) -> WaitingTask:
    task_id, queue_name, status, run_after, names, workers, broadcast, open_slots, _ = row
    due = loaded(run_after)
    assert due is not None
    return WaitingTask(
        as_uuid(task_id), queue_name, status, due, None if names is None else json.loads(names),
        workers, bool(broadcast), open_slots,
    )  # fmt: skip


# No index contains parked tasks: a parked task is among scheduled tasks that are due soon while it
# waits, and each vain try adds an unsuccessful attempt. The latest of both are read. PostgreSQL
# would prefer the primary key to the index of unsuccessful attempts: with a range and an order that
# begin with the status it has no other. SQLite needs the conditions of the indexes word by word.
PARKED = Statement.of("""
SELECT id, name, CAST({since parked_at} AS double precision) AS seconds
FROM (
    SELECT id, name, parked_at
    FROM (
        SELECT id, name, parked_at
        FROM taskqueue_task
        WHERE status IN ('retrying', 'scheduled')
        ORDER BY run_after
        LIMIT %(limit)s
    ) AS soon
    WHERE parked_at IS NOT NULL
    UNION
    SELECT task.id, task.name, task.parked_at
    FROM (
        SELECT task_id, error_class
        FROM taskqueue_lease
        WHERE status >= 'returned' AND status <= 'returned'
            AND status IN ('failed', 'lost', 'returned', 'stopped')
        ORDER BY status DESC, id DESC
        LIMIT %(limit)s
    ) AS attempt
    JOIN taskqueue_task AS task ON task.id = attempt.task_id
    WHERE attempt.error_class = %(unknown)s
        AND task.parked_at IS NOT NULL AND task.status IN ('ready', 'scheduled')
) AS parked
ORDER BY seconds DESC
""")


class Parked(NamedTuple):
    """A task that was claimed only by workers that do not know its name."""

    id: UUID
    name: str
    # Since when it is parked.
    seconds: float


def read_parked(*, most: int) -> list[Parked]:
    """Return parked tasks, those that will fail first at the beginning."""
    rows = read(PARKED, limit=most, unknown=class_path(UnknownTask))
    return [Parked(as_uuid(task_id), name, seconds) for task_id, name, seconds in rows]
