"""Parked tasks: the workers that claimed them did not know them; in the end they fail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from taskqueue.conf import get_settings
from taskqueue.core.retries import class_path
from taskqueue.engine.statement import Statement
from taskqueue.exceptions import UnknownTask
from taskqueue.monitoring.notice import ERROR, WARNING, Notice
from taskqueue.monitoring.reading import read

MOST_NAMES = 20

# No index has what is parked: it stands among what is due soon while it rests, and each time that
# it is tried in vain, an attempt of its is among those that went wrong. The latest of both are
# read. PostgreSQL would rather read the primary key than the index of what went wrong: a range and
# an order that begins with the status leave it no other. SQLite wants the conditions of the indexes
# word by word.
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


def parked(*, most: int) -> Iterator[Notice]:
    """Yield notices by task name, the one that fails first at first."""
    by_name: defaultdict[str, list[Any]] = defaultdict(list)
    unknown = class_path(UnknownTask)
    for row in read(PARKED, limit=most, unknown=unknown):
        by_name[row[1]].append(row)
    for name, rows in list(by_name.items())[:MOST_NAMES]:
        task_id, _, seconds = rows[0]
        yield Notice(
            code="parked",
            level=ERROR if seconds > get_settings().PARK_LIMIT.total_seconds() / 2 else WARNING,
            subject=name,
            count=len(rows),
            is_capped=len(rows) >= most,
            example=str(UUID(str(task_id))),
            seconds=seconds,
        )
