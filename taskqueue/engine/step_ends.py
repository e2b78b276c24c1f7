"""Notes of ends for steps of workflows, written in the transaction that ends the task.

A note is all that recording does for a workflow: it locks no step and no workflow, so that
transactions that end members of one step never meet. `engine.workflows.folding` counts notes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import execute
from taskqueue.engine.rows import Ended
from taskqueue.engine.sessions import KEEPS_PLAN, is_sqlite, kept_plan
from taskqueue.engine.statement import Fact, Statement

# A task that was retried by hand may end again before its first end was counted.
_REPLACE = """
ON CONFLICT (subject) DO UPDATE
SET status = EXCLUDED.status, updates = EXCLUDED.updates, has_fan = EXCLUDED.has_fan
"""
# The server keeps the plan: a join by `= ANY (ARRAY[key])` leaves nothing but the key.
NOTE = Statement(
    postgresql=f"""
        INSERT INTO taskqueue_stepend (subject, workflow_id, step_id, status, updates, has_fan)
        SELECT
            note.subject, step.workflow_id, step.id, note.status, note.updates::jsonb, note.has_fan
        FROM unnest(
            %(subjects)s::uuid[], %(steps)s::bigint[], %(statuses)s::text[], %(updates)s::text[],
            %(fans)s::boolean[]
        ) AS note (subject, step_id, status, updates, has_fan)
        CROSS JOIN (SELECT 1 WHERE {KEEPS_PLAN}) AS clock
        JOIN taskqueue_step AS step ON step.id = ANY (ARRAY[note.step_id])
        {_REPLACE}
    """,  # noqa: S608  (of constants)
    sqlite=f"""
        INSERT INTO taskqueue_stepend (subject, workflow_id, step_id, status, updates, has_fan)
        SELECT note.value, step.workflow_id, step.id,
            json_extract(%(statuses)s, '$[' || note.key || ']'),
            json_extract(%(updates)s, '$[' || note.key || ']'),
            json_extract(%(fans)s, '$[' || note.key || ']')
        FROM json_each(%(subjects)s) AS note
        CROSS JOIN taskqueue_step AS step
        WHERE step.id = json_extract(%(steps)s, '$[' || note.key || ']')
        {_REPLACE}
    """,  # noqa: S608  (of constants)
)
HAS_STEP_ENDS = Fact.of("EXISTS (SELECT 1 FROM taskqueue_stepend)")


def note_ends(connection: BaseDatabaseWrapper, ended: Iterable[Ended]) -> None:
    """Note the ends of those of the tasks that belong to a step, in the caller's transaction."""
    noted = [task for task in ended if task.step_id is not None]
    if noted:
        # SQLite's driver stores UUIDs without dashes.
        subjects: list[Any] = [task.task_id for task in noted]
        if is_sqlite(connection):
            subjects = [UUID(subject).hex for subject in subjects]
        with kept_plan(connection) as series:
            execute(
                connection,
                NOTE,
                subjects=subjects,
                steps=[task.step_id for task in noted],
                statuses=[str(task.status) for task in noted],
                updates=[task.updates for task in noted],
                fans=[task.has_fan for task in noted],
                series=series,
            )
