"""Counting the ends of steps, and inserting their tasks, on SQLite, in the caller's transaction."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.payloads import PLACEMENT_COLUMNS
from taskqueue.engine.rows import Folded, StepTasks
from taskqueue.engine.specs import (
    CLAIM_COLUMNS,
    DURATIONS,
    LIMIT_COLUMNS,
    PLAIN_COLUMNS,
    EnqueueSpec,
)
from taskqueue.engine.sqlite.enqueue import ARRIVED, TIMES
from taskqueue.engine.sqlite.values import clock, dashed, microseconds, stored
from taskqueue.models.task import Route

# Notes that do more than count are left to the advance. For a step that has ended they have no
# effect.
TAKE_NOTES = """
DELETE FROM taskqueue_stepend
WHERE step_id IN (SELECT value FROM json_each(%s)) AND NOT (
    (updates IS NOT NULL OR has_fan)
    AND (SELECT status FROM taskqueue_step WHERE id = step_id) = 'running'
)
RETURNING step_id, status, number
"""
COUNT_ENDS = """
UPDATE taskqueue_step
SET ended = ended + %(ended)s,
    failures = failures + %(failures)s,
    counted_at = %(now)s,
    is_due = is_due OR status = 'running' AND (
        ended + %(ended)s >= members
        OR released - held < members
        OR failures + %(failures)s > tolerated
    )
WHERE id = %(id)s
RETURNING id, is_due
"""
LEFT = """
SELECT
    id, workflow_id,
    EXISTS (
        SELECT 1
        FROM taskqueue_stepend AS note
        WHERE note.workflow_id = step.workflow_id AND note.step_id = step.id
    ),
    members - ended
FROM taskqueue_step AS step
WHERE id IN (SELECT value FROM json_each(%s))
"""

_COLUMNS = (*PLAIN_COLUMNS, *LIMIT_COLUMNS, *CLAIM_COLUMNS, *PLACEMENT_COLUMNS, "step_id", "place")
INSERT_TASK = f"""
INSERT INTO taskqueue_task ({", ".join(_COLUMNS)})
VALUES ({", ".join(f"%({column})s" for column in _COLUMNS)})
"""  # noqa: S608  (the columns are constants)
# The columns that the fields of `StepTasks` hold.
OWN = ("id", "args", "kwargs", "step_id", "place", "partition", "limits")
INSERT_MEMBER = "INSERT INTO taskqueue_member (step_id, place, task_id) VALUES (%s, %s, %s)"


def fold(connection: BaseDatabaseWrapper, step_ids: Sequence[int]) -> list[Folded]:
    with connection.cursor() as cursor:
        cursor.execute(TAKE_NOTES, (json.dumps(list(step_ids)),))
        ended: Counter[int] = Counter()
        failures: Counter[int] = Counter()
        for step_id, status, number in cursor.fetchall():
            ended[step_id] += number
            failures[step_id] += 0 if status == "succeeded" else number
        due = set()
        for step_id, number in ended.items():
            counts = {"id": step_id, "ended": number, "failures": failures[step_id]}
            cursor.execute(COUNT_ENDS, {**counts, "now": stored(clock())})
            due |= {id for id, is_due in cursor.fetchall() if is_due}
        cursor.execute(LEFT, (json.dumps(list(step_ids)),))
        rows = cursor.fetchall()
    return [
        Folded(step_id, dashed(workflow_id), step_id in due or bool(has_notes), lacking or 0)
        for step_id, workflow_id, has_notes, lacking in rows
    ]


def insert_step_tasks(
    connection: BaseDatabaseWrapper,
    spec: EnqueueSpec,
    batches: Iterable[StepTasks],
    *,
    now: datetime,
    changes: Mapping[str, Any],
) -> None:
    shared = {**spec.columns_at(now), **changes}
    for column in TIMES:
        shared[column] = stored(shared[column])
    for column in DURATIONS:
        shared[column] = microseconds(shared[column])
    number = 0
    with connection.cursor() as cursor:
        for tasks in batches:
            own = [dict(zip(OWN, values, strict=True)) for values in zip(*tasks, strict=True)]
            for values in own:
                if values["partition"] is not None:
                    values["route"] = Route.PARTITION.value
            cursor.executemany(INSERT_TASK, [shared | values for values in own])
            members = zip(tasks.step_ids, tasks.places, tasks.ids, strict=True)
            cursor.executemany(INSERT_MEMBER, list(members))
            number += len(own)
        if number:
            cursor.execute(ARRIVED, (spec.queue_name, spec.name, number))
