"""Count the members of steps again from their tasks, whatever was counted before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import select
from taskqueue.engine.sessions import is_sqlite
from taskqueue.engine.statement import Statement, change, fetch

# The most members of wide steps that one statement counts.
MOST_COUNTED = 10_000
LAST_PLACE = 2**31 - 1

# Ends that are noted are subtracted, because a fold has yet to add them. A snapshot sees an end and
# its note, or neither.
_NOTED = """
    SELECT
        step_id, -sum(number), -sum(CASE WHEN status = 'succeeded' THEN 0 ELSE number END)
    FROM taskqueue_stepend
    WHERE workflow_id {in workflows uuid} AND step_id {in steps bigint}
    GROUP BY step_id
"""
_CHILDREN = """
    SELECT parent_step_id, count(*), count(*) FILTER (WHERE status <> 'succeeded')
    FROM taskqueue_workflow
    WHERE parent_step_id {in steps bigint} AND finished_at IS NOT NULL
    GROUP BY parent_step_id
"""
# How a member has ended; empty if it has not. The task is looked up by its key: a join would be
# planned from statistics that were gathered before any task had ended, and would compare all
# members with all tasks. A member that returned a fan-out ends with the fan-out. A member whose
# task was deleted counts as ended without success, because nobody will ever run it.
_STATUS = """
    COALESCE(
        (
            SELECT CASE
                WHEN task.finished_at IS NULL THEN ''
                WHEN fan.id IS NULL THEN task.status
                WHEN fan.finished_at IS NOT NULL THEN fan.status
                ELSE ''
            END
            FROM taskqueue_task AS task
            LEFT JOIN taskqueue_step AS fan
                ON fan.parent_step_id = member.step_id AND fan.parent_place = member.place
            WHERE task.id = member.task_id
        ),
        'deleted'
    ) AS status
"""
# Rows to add up for each step: its ended members, and those that did not succeed. PostgreSQL
# computes the row of a part only when it is fetched.
COUNTED = Statement(
    postgresql=f"""
        SELECT part.step_id, found.ended, found.failures
        FROM unnest(%(parts)s::bigint[], %(firsts)s::int[], %(stops)s::int[])
            AS part (step_id, first, stop)
        CROSS JOIN LATERAL (
            SELECT count(*) AS ended, count(*) FILTER (WHERE status <> 'succeeded') AS failures
            FROM (
                SELECT {_STATUS}
                FROM taskqueue_member AS member
                WHERE member.step_id = part.step_id
                    AND member.place >= part.first AND member.place < part.stop
                OFFSET 0
            ) AS member
            WHERE status <> ''
        ) AS found
        UNION ALL
        {Statement.of(_NOTED).postgresql}
        UNION ALL
        {Statement.of(_CHILDREN).postgresql}
    """,  # noqa: S608  (of constants)
    sqlite=f"""
        {Statement.of(_NOTED).sqlite}
        UNION ALL
        {Statement.of(_CHILDREN).sqlite}
        UNION ALL
        SELECT step_id, count(*), count(*) FILTER (WHERE status <> 'succeeded')
        FROM (
            SELECT member.step_id, {_STATUS}
            FROM taskqueue_member AS member
            WHERE member.step_id IN (SELECT value FROM json_each(%(steps)s)) AND member.place >= 0
        )
        WHERE status <> ''
        GROUP BY step_id
    """,  # noqa: S608  (of constants)
)
CURSOR = "taskqueue_counted"


def counted(
    connection: BaseDatabaseWrapper, members: Mapping[int, int], workflow_ids: Sequence[UUID]
) -> dict[int, tuple[int, int]]:
    """Return the correct `ended` and `failures` of steps, in the caller's transaction.

    `members`: the number of members of each step. The caller has locked the steps, so no fold can
    change their counts.
    """
    sums = dict.fromkeys(members, (0, 0))
    for step_id, ended, failures in _rows(connection, members, workflow_ids):
        before = sums[step_id]
        sums[step_id] = before[0] + int(ended), before[1] + int(failures)
    return sums


def _rows(
    connection: BaseDatabaseWrapper, members: Mapping[int, int], workflow_ids: Sequence[UUID]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows to add up.

    On PostgreSQL they come from a cursor, so all rows belong to one snapshot although each FETCH
    counts a bounded number of members, however wide a step is.
    """
    ids = {"steps": list(members), "workflows": [id.hex for id in workflow_ids]}
    if not members:
        return
    if is_sqlite(connection):
        yield from select(connection, COUNTED, **ids)
        return
    parts: dict[str, list[int]] = {"parts": [], "firsts": [], "stops": []}
    widths: list[int] = []
    for step_id, number in members.items():
        firsts = [*range(0, max(1, number), MOST_COUNTED)]
        parts["parts"] += [step_id] * len(firsts)
        parts["firsts"] += firsts
        parts["stops"] += [*firsts[1:], LAST_PLACE]
        widths += [MOST_COUNTED] * (len(firsts) - 1) + [max(1, number - firsts[-1])]
    change(connection, f"DECLARE {CURSOR} NO SCROLL CURSOR FOR {COUNTED.postgresql}", ids | parts)
    for number in _at_once(widths):
        yield from fetch(connection, f"FETCH {number} FROM {CURSOR}")
    yield from fetch(connection, f"FETCH ALL FROM {CURSOR}")
    change(connection, f"CLOSE {CURSOR}")


def _at_once(widths: Sequence[int]) -> Iterator[int]:
    """Yield how many parts each FETCH counts: up to `MOST_COUNTED` members, or one part."""
    parts = total = 0
    for width in widths:
        if parts and total + width > MOST_COUNTED:
            yield parts
            parts = total = 0
        parts, total = parts + 1, total + width
    if parts:
        yield parts
