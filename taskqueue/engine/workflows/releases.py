"""Writing the release of steps and their tasks, with few statements for many steps."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.states import TaskStatus
from taskqueue.core.workflow_states import StepStatus
from taskqueue.engine.dialect import array_of
from taskqueue.engine.ready import MAKES_READY
from taskqueue.engine.sessions import KEEPS_PLAN, is_sqlite, kept_plan
from taskqueue.engine.sqlite.values import TASKS_BY_ID, stored
from taskqueue.engine.statement import change, fetch
from taskqueue.models import Step

_RUN = f"""
    SET status = '{StepStatus.RUNNING}',
        released_at = %(now)s,
        members = row.members,
        tolerated = row.tolerated,
        released = row.released,
        is_due = row.is_due OR step.ended >= row.members
"""
# On SQLite: what PostgreSQL does by `RELEASE`, in two statements.
RUN_STEPS = f"""
    UPDATE taskqueue_step AS step
    {_RUN}
    FROM (
        SELECT
            json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS members,
            json_extract(value, '$[2]') AS tolerated, json_extract(value, '$[3]') AS released,
            json_extract(value, '$[4]') AS is_due
        FROM json_each(%(rows)s)
    ) AS row
    WHERE step.id = row.id
"""  # noqa: S608  (of constants)
MAKE_TASKS_READY = f"""
    UPDATE {TASKS_BY_ID}
    SET {MAKES_READY}
    WHERE status = '{TaskStatus.BLOCKED}' AND id IN (
        SELECT member.task_id
        FROM json_each(%(plain)s) AS own
        CROSS JOIN taskqueue_member AS member ON member.step_id = own.value
    )
    RETURNING CASE WHEN route = 0 THEN queue_name END
"""  # noqa: S608  (of constants)
# Parts of the statements that release: set steps to running, and the tasks of plain steps to ready.
# LATERAL with OFFSET is not a join that the planner could reverse, and as it does not know the
# status it does not choose the index of all blocked tasks.
RUN = f"""
    UPDATE taskqueue_step AS step
    {_RUN}
    FROM unnest(
        %(steps)s::bigint[], %(members)s::int[], %(tolerated)s::int[], %(released)s::int[],
        %(dues)s::boolean[]
    ) AS row (id, members, tolerated, released, is_due)
    WHERE step.id = ANY (ARRAY[row.id])
"""
FIND_BLOCKED = f"""
    SELECT member.task_id, '{TaskStatus.BLOCKED}' AS status
    FROM clock
    CROSS JOIN unnest(%(plain)s::bigint[]) AS own (id)
    CROSS JOIN LATERAL (
        SELECT task_id FROM taskqueue_member WHERE step_id = own.id OFFSET 0
    ) AS member
"""  # noqa: S608  (of constants)
MAKE_READY = f"""
    UPDATE taskqueue_task AS task
    SET {MAKES_READY}
    FROM blocked
    WHERE task.id = ANY (ARRAY[blocked.task_id]) AND task.status = ANY (ARRAY[blocked.status])
    RETURNING CASE WHEN task.route = 0 THEN task.queue_name END AS queue_name
"""  # noqa: S608  (of constants)
# Locks: steps of workflows that the caller has locked, then their tasks. The server keeps the plan,
# which can use only keys.
RELEASE = f"""
    WITH clock AS MATERIALIZED (
        SELECT 1 WHERE {KEEPS_PLAN}
    ), run AS ({RUN}), blocked AS MATERIALIZED ({FIND_BLOCKED})
    {MAKE_READY}
"""


@dataclass
class Pending:
    """Steps to release, and those among them whose blocked tasks become ready (plain steps)."""

    steps: list[Step] = field(default_factory=list)
    plain: list[int] = field(default_factory=list)

    def parameters(self) -> dict[str, list[Any]]:
        """Return the array parameters of a statement that releases them."""
        rows = [_row(step) for step in self.steps]
        columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
        named = dict(zip(COLUMNS, map(list, columns), strict=True))
        return {**named, "plain": list(self.plain)}


# The arrays of `RUN`, in the order of `_row`.
COLUMNS = ("steps", "members", "tolerated", "released", "dues")


def _row(step: Step) -> tuple[int, int | None, int, int, bool]:
    return step.id, step.members, step.tolerated, step.released, not _waits_for_ends(step)


def release_steps(
    connection: BaseDatabaseWrapper, pending: Pending, *, now: datetime
) -> set[str | None]:
    """Set steps to running, and the blocked tasks of plain steps to ready.

    Return the tasks' queues. None in the result stands for tasks that not every worker may claim.
    """
    if is_sqlite(connection):
        rows = json.dumps([_row(step) for step in pending.steps])
        values = {"rows": rows, "plain": json.dumps(list(pending.plain)), "now": stored(now)}
        change(connection, RUN_STEPS, values)
        found = fetch(connection, MAKE_TASKS_READY, values)
    else:
        with kept_plan(connection) as series:
            arrays = {name: array_of(value) for name, value in pending.parameters().items()}
            found = fetch(connection, RELEASE, {**arrays, "now": now, "series": series})
    return {name for (name,) in found}


def _waits_for_ends(step: Step) -> bool:
    """Return whether all members of a step have been sent, and some may not have ended."""
    members = step.members or 0
    return step.released - step.held == members > 0
