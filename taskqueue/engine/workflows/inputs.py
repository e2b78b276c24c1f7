"""What a body is given of the steps before it, in one statement where that is little.

Most steps read the results of a task, or of a few members. `results` reads everything else.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.states import TaskStatus
from taskqueue.core.workflow_states import StepKind, StepStatus
from taskqueue.engine.dialect import as_uuid, select
from taskqueue.engine.statement import Statement
from taskqueue.engine.workflows import members as members_of_steps

# Members of a step whose results are read with it.
FEW = 200

# The steps of that task's workflow that have these names, with their members in order. A step is
# plain if its result is what its members returned.
READ = Statement(
    postgresql="""
        SELECT
            own.workflow_id, step.id, step.name, step.kind, step.status,
            NOT jsonb_exists(step.request, 'resolved') AND NOT EXISTS (
                SELECT 1 FROM taskqueue_step AS fan WHERE fan.parent_step_id = step.id
            ),
            step.members, member.status, member.return_value
        FROM taskqueue_task AS task
        CROSS JOIN LATERAL (
            SELECT workflow_id FROM taskqueue_step WHERE id = task.step_id OFFSET 0
        ) AS own
        CROSS JOIN LATERAL (
            SELECT *
            FROM taskqueue_step
            WHERE workflow_id = own.workflow_id AND name = ANY (%(names)s::text[])
            OFFSET 0
        ) AS step
        LEFT JOIN LATERAL (
            SELECT member.place, read.status, read.return_value::text
            FROM taskqueue_member AS member
            CROSS JOIN LATERAL (
                SELECT status, return_value
                FROM taskqueue_task
                WHERE id = member.task_id
                OFFSET 0
            ) AS read
            WHERE member.step_id = step.id AND member.place >= 0 AND step.members <= %(few)s
            OFFSET 0
        ) AS member ON true
        WHERE task.id = %(task)s::uuid
        ORDER BY step.id, member.place
    """,
    sqlite="""
        SELECT
            own.workflow_id, step.id, step.name, step.kind, step.status,
            json_type(step.request, '$.resolved') IS NULL AND NOT EXISTS (
                SELECT 1 FROM taskqueue_step AS fan WHERE fan.parent_step_id = step.id
            ),
            step.members, read.status, read.return_value
        FROM taskqueue_task AS task
        CROSS JOIN taskqueue_step AS own ON own.id = task.step_id
        CROSS JOIN taskqueue_step AS step
            ON step.workflow_id = own.workflow_id
            AND step.name IN (SELECT value FROM json_each(%(names)s))
        LEFT JOIN taskqueue_member AS member
            ON member.step_id = step.id AND member.place >= 0 AND step.members <= %(few)s
        LEFT JOIN taskqueue_task AS read ON read.id = member.task_id
        WHERE task.id = %(task)s
        ORDER BY step.id, member.place
    """,
)


def read_inputs(
    connection: BaseDatabaseWrapper, task_id: str, names: Collection[str]
) -> tuple[UUID | None, dict[str, Any]]:
    """Return the workflow of a task, and those results of its steps of these names that are little.

    The workflow is None where it has no such step.
    """
    rows = select(connection, READ, task=UUID(task_id), names=sorted(names), few=FEW)
    steps: dict[str, tuple[str, str, bool, int | None]] = {}
    texts: dict[str, list[str | None]] = {}
    for _, _, name, kind, status, is_plain, members, task_status, text in rows:
        steps[name] = kind, status, bool(is_plain), members
        if task_status is not None:
            has_succeeded = task_status == TaskStatus.SUCCEEDED
            texts.setdefault(name, []).append(text if has_succeeded else None)
    results: dict[str, Any] = {}
    for name, (kind, status, is_plain, members) in steps.items():
        own = texts.get(name, [])
        if status != StepStatus.SUCCEEDED:
            results[name] = None
        elif is_plain and len(own) == members and _size(own) <= members_of_steps.LARGEST_LIST:
            values = [None if text is None else json.loads(text) for text in own]
            if kind == StepKind.MAP:
                results[name] = values
            elif kind == StepKind.TASK:
                results[name] = values[0] if values else None
    return (as_uuid(rows[0][0]) if rows else None), results


def _size(texts: Sequence[str | None]) -> int:
    """Return the bytes of these texts."""
    return sum(len(text.encode()) for text in texts if text is not None)
