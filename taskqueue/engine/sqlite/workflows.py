"""Counting the ends of steps, and inserting their tasks, on SQLite, in the caller's transaction."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.rows import Folded, StepTask
from taskqueue.engine.specs import (
    CLAIM_COLUMNS,
    DURATIONS,
    LIMIT_COLUMNS,
    PLAIN_COLUMNS,
    EnqueueSpec,
)
from taskqueue.engine.sqlite.enqueue import ARRIVED, TIMES
from taskqueue.engine.sqlite.values import dashed, microseconds, stored

TAKE_NOTES = """
DELETE FROM taskqueue_stepend
WHERE step_id IN (SELECT value FROM json_each(%s)) AND updates IS NULL AND NOT has_fan
RETURNING step_id, status
"""
COUNT_ENDS = """
UPDATE taskqueue_step
SET ended = ended + %(ended)s,
    failures = failures + %(failures)s,
    is_due = is_due OR status = 'running' AND (
        ended + %(ended)s >= members
        OR released < members
        OR failures + %(failures)s > tolerated
    )
WHERE id = %(id)s
RETURNING id, workflow_id, is_due, members - ended
"""
UNMOVED = """
SELECT id, workflow_id, 0, 0 FROM taskqueue_step WHERE id IN (SELECT value FROM json_each(%s))
"""

_COLUMNS = (*PLAIN_COLUMNS, *LIMIT_COLUMNS, *CLAIM_COLUMNS, "step_id", "place")
INSERT_TASK = f"""
INSERT INTO taskqueue_task ({", ".join(_COLUMNS)})
VALUES ({", ".join(f"%({column})s" for column in _COLUMNS)})
"""  # noqa: S608  (the columns are constants)
INSERT_MEMBER = "INSERT INTO taskqueue_member (step_id, place, task_id) VALUES (%s, %s, %s)"


def fold(connection: BaseDatabaseWrapper, step_ids: Sequence[int]) -> list[Folded]:
    with connection.cursor() as cursor:
        cursor.execute(TAKE_NOTES, (json.dumps(list(step_ids)),))
        ended: Counter[int] = Counter()
        failures: Counter[int] = Counter()
        for step_id, status in cursor.fetchall():
            ended[step_id] += 1
            failures[step_id] += status != "succeeded"
        rows = []
        for step_id, number in ended.items():
            counts = {"id": step_id, "ended": number, "failures": failures[step_id]}
            cursor.execute(COUNT_ENDS, counts)
            rows += cursor.fetchall()
        cursor.execute(UNMOVED, (json.dumps([id for id in step_ids if id not in ended]),))
        rows += cursor.fetchall()
    return [Folded(row[0], dashed(row[1]), bool(row[2]), row[3] or 0) for row in rows]


def insert_step_tasks(
    connection: BaseDatabaseWrapper,
    spec: EnqueueSpec,
    tasks: Sequence[StepTask],
    *,
    now: datetime,
    changes: Mapping[str, Any],
) -> None:
    shared = {**spec.columns_at(now), **changes}
    for column in TIMES:
        shared[column] = stored(shared[column])
    for column in DURATIONS:
        shared[column] = microseconds(shared[column])
    with connection.cursor() as cursor:
        cursor.executemany(INSERT_TASK, [{**shared, **task._asdict()} for task in tasks])
        cursor.executemany(INSERT_MEMBER, [(task.step_id, task.place, task.id) for task in tasks])
        cursor.execute(ARRIVED, (spec.queue_name, spec.name, len(tasks)))


def wake_sleeping(connection: BaseDatabaseWrapper, payload: str) -> None:
    """Nobody listens: workers look often."""
