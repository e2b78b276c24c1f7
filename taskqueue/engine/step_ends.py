"""Notes of ends for steps of workflows, written in the transaction that ends the task.

A note is all that recording writes for a workflow: it locks no step and no workflow, so that
transactions that end members of the same step never wait for each other. Members of a step that
succeed in one transaction share a note. The folds of the dialects count the notes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.states import TaskStatus
from taskqueue.engine.dialect import execute
from taskqueue.engine.rows import Ended
from taskqueue.engine.sessions import KEEPS_PLAN, is_sqlite, kept_plan
from taskqueue.engine.statement import Fact, Statement

# A task that was retried by hand may end again before its first end was counted. Only unsuccessful
# tasks are retried alone, and those share no note.
_REPLACE = """
ON CONFLICT (subject) DO UPDATE
SET status = EXCLUDED.status, updates = EXCLUDED.updates, has_fan = EXCLUDED.has_fan,
    number = taskqueue_stepend.number - 1 + EXCLUDED.number
"""
# The server keeps the plan: a join by `= ANY (ARRAY[key])` leaves it nothing but the key.
NOTE = Statement(
    postgresql=f"""
        INSERT INTO taskqueue_stepend (
            subject, workflow_id, step_id, status, number, updates, has_fan
        )
        SELECT
            note.subject, step.workflow_id, step.id, note.status, note.number, note.updates::jsonb,
            note.has_fan
        FROM unnest(
            %(subjects)s::uuid[], %(steps)s::bigint[], %(statuses)s::text[], %(numbers)s::int[],
            %(updates)s::text[], %(fans)s::boolean[]
        ) AS note (subject, step_id, status, number, updates, has_fan)
        CROSS JOIN (SELECT 1 WHERE {KEEPS_PLAN}) AS clock
        JOIN taskqueue_step AS step ON step.id = ANY (ARRAY[note.step_id])
        {_REPLACE}
    """,  # noqa: S608  (of constants)
    sqlite=f"""
        INSERT INTO taskqueue_stepend (
            subject, workflow_id, step_id, status, number, updates, has_fan
        )
        SELECT note.value, step.workflow_id, step.id,
            json_extract(%(statuses)s, '$[' || note.key || ']'),
            json_extract(%(numbers)s, '$[' || note.key || ']'),
            json_extract(%(updates)s, '$[' || note.key || ']'),
            json_extract(%(fans)s, '$[' || note.key || ']')
        FROM json_each(%(subjects)s) AS note
        CROSS JOIN taskqueue_step AS step
        WHERE step.id = json_extract(%(steps)s, '$[' || note.key || ']')
        {_REPLACE}
    """,  # noqa: S608  (of constants)
)
HAS_STEP_ENDS = Fact.of("EXISTS (SELECT 1 FROM taskqueue_stepend)")


class _Note(NamedTuple):
    """A note in the form in which it is inserted."""

    subject: Any
    step_id: int
    status: str
    number: int
    updates: str | None
    has_fan: bool


def note_ends(connection: BaseDatabaseWrapper, ended: Iterable[Ended]) -> None:
    """Note the ends of the tasks that belong to a step, in the caller's transaction."""
    if not (notes := _notes_of(ended)):
        return
    columns: list[list[Any]] = [list(column) for column in zip(*notes, strict=True)]
    subjects, steps, statuses, numbers, updates, fans = columns
    if is_sqlite(connection):
        # On SQLite Django stores UUIDs without dashes.
        subjects = [UUID(subject).hex for subject in subjects]
    with kept_plan(connection) as series:
        execute(
            connection,
            NOTE,
            subjects=subjects,
            steps=steps,
            statuses=statuses,
            numbers=numbers,
            updates=updates,
            fans=fans,
            series=series,
        )


def _notes_of(ended: Iterable[Ended]) -> list[_Note]:
    """Return the notes of these ends; plain successes in one step share a note."""
    notes: list[_Note] = []
    subjects: dict[int, str] = {}
    numbers: dict[int, int] = {}
    for task_id, _, _, status, step_id, updates, has_fan in ended:
        if step_id is None:
            continue
        if status == TaskStatus.SUCCEEDED and updates is None and not has_fan:
            number = numbers[step_id] = numbers.get(step_id, 0) + 1
            if number == 1:
                subjects[step_id] = task_id
        else:
            notes.append(_Note(task_id, step_id, str(status), 1, updates, has_fan))
    succeeded = TaskStatus.SUCCEEDED.value
    notes += [
        _Note(subjects[step_id], step_id, succeeded, number, None, False)
        for step_id, number in numbers.items()
    ]
    return notes
