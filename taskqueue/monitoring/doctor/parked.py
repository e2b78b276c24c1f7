"""Tasks that are parked: whoever took them did not know them, and in the end they fail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from taskqueue.conf import get_settings
from taskqueue.exceptions import UnknownTask
from taskqueue.monitoring.doctor.finding import PROBLEM, WARNING, WORKERS, Finding
from taskqueue.monitoring.doctor.words import duration
from taskqueue.monitoring.reading import moment, read
from taskqueue.snapshots import class_path

MOST = 10_000
MOST_NAMES = 20

# No index has what is parked: it stands among what is due soon while it rests, and each time that
# it is tried in vain, an attempt of its is among those that went wrong. The latest of both are
# read. PostgreSQL would rather read the primary key than the index of what went wrong: a range and
# an order that begins with the status leave it no other. SQLite wants the conditions of the indexes
# word by word.
_PARKED = """
SELECT id, name, {seconds} AS seconds
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
        WHERE {returned} AND status IN ('failed', 'lost', 'returned', 'stopped')
        ORDER BY status DESC, id DESC
        LIMIT %(limit)s
    ) AS attempt
    JOIN taskqueue_task AS task ON task.id = attempt.task_id
    WHERE attempt.error_class = %(unknown)s
        AND task.parked_at IS NOT NULL AND task.status IN ('ready', 'scheduled')
) AS parked
ORDER BY seconds DESC
"""
PARKED = {
    "postgresql": _PARKED.format(
        seconds="EXTRACT(epoch FROM clock_timestamp() - parked_at)::float8",
        returned="status >= 'returned' AND status <= 'returned'",
    ),
    "sqlite": _PARKED.format(
        seconds="(julianday(%(now)s) - julianday(parked_at)) * 86400.0",
        returned="status = 'returned'",
    ),
}


def parked() -> Iterator[Finding]:
    """By the task's name, that first which fails first."""
    by_name: defaultdict[str, list[Any]] = defaultdict(list)
    unknown = class_path(UnknownTask)
    for row in read(PARKED, now=moment(), limit=MOST, unknown=unknown):
        by_name[row[1]].append(row)
    for name, rows in list(by_name.items())[:MOST_NAMES]:
        yield _of_name(name, len(rows), rows[0])


def _of_name(name: str, number: int, oldest: Any) -> Finding:
    task_id, seconds = UUID(str(oldest[0])), oldest[2]
    limit = get_settings().PARK_LIMIT.total_seconds()
    left = limit - seconds
    fails = f"in {duration(left)}" if left > 0 else "when it is tried next"
    return Finding(
        check=WORKERS,
        severity=PROBLEM if left < limit / 2 else WARNING,
        subject=name,
        seen=f"Tasks are parked, for no worker that took them knows {name}: {number:,}. The first "
        f"is {task_id}, for {duration(seconds)}: it fails {fails}.",
        remedy="Start workers whose code has the task, restart those whose code is old, or cancel "
        f"what nobody is to run. See manage.py taskqueue why {task_id}.",
    )
