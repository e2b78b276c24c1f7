"""Release, skip or cancel the steps that depend on others, when those have ended.

If a step fails or is cancelled, an edge `after success` cancels its dependant, unless the step is
allowed to fail. An edge for another end than the actual one, or from a skipped step, is not taken.
A step none of whose edges was taken is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.workflow_states import StepStatus
from taskqueue.engine.dialect import execute, select
from taskqueue.engine.sessions import KEEPS_PLAN, is_sqlite, kept_plan
from taskqueue.engine.statement import Statement
from taskqueue.engine.workflows.locking import STEPS
from taskqueue.models import Step

# Whether the edge from an ended step was taken, and whether it cancels its dependant.
_TAKEN = """CASE dependency."when"
            WHEN 'succeeded' THEN upstream.status = 'succeeded'
                OR upstream.status = 'failed' AND upstream.on_failure = 'continue'
            WHEN 'failed' THEN upstream.status = 'failed'
            ELSE upstream.status <> 'skipped'
        END"""
_CANCELS = """dependency."when" = 'succeeded' AND (
            upstream.status = 'cancelled'
            OR upstream.status = 'failed' AND upstream.on_failure = 'fail'
        )"""
_MOVE = f"""
UPDATE taskqueue_step
SET waits = taskqueue_step.waits - move.waits,
    taken = taskqueue_step.taken + move.taken,
    cancels = taskqueue_step.cancels + move.cancels
FROM (
    SELECT
        dependency.downstream_id,
        count(*) AS waits,
        count(*) FILTER (WHERE {_TAKEN}) AS taken,
        count(*) FILTER (WHERE {_CANCELS}) AS cancels
    FROM {{edges}}
    GROUP BY dependency.downstream_id
) AS move
WHERE taskqueue_step.id {{own}}
RETURNING {{returned}}
"""  # noqa: S608  (of constants)
SUCCEED = Statement.of(f"""
    UPDATE taskqueue_step
    SET status = '{StepStatus.SUCCEEDED}', finished_at = %(now)s, is_due = false
    WHERE id {{in succeeded bigint}}
""")  # noqa: S608  (of constants)
_PASS_ON_POSTGRESQL = _MOVE.format(
    edges="""upstream
    CROSS JOIN LATERAL (
        SELECT downstream_id, "when"
        FROM taskqueue_dependency
        WHERE upstream_id = upstream.id
        OFFSET 0
    ) AS dependency""",
    own="= ANY (ARRAY[move.downstream_id])",
    returned=STEPS.columns("taskqueue_step"),
)
# Locks: steps of workflows that the caller has locked; a session that folds one of them waits for
# nothing. On PostgreSQL the same statement ends steps that have succeeded: none of them may depend
# on another, because a statement does not change a row twice. The server keeps the plan: LATERAL
# with OFFSET, and joins by `= ANY (ARRAY[key])`, leave it nothing but the key. With statistics from
# when there were few steps it would otherwise compare each step with each other step.
PASS_ON = Statement(
    postgresql=f"""
        WITH clock AS MATERIALIZED (
            SELECT 1 WHERE {KEEPS_PLAN}
        ), succeeded AS (
            {SUCCEED.postgresql}
            RETURNING id, status, on_failure
        ), upstream AS MATERIALIZED (
            SELECT id, status, on_failure
            FROM succeeded
            UNION ALL
            SELECT id, status, on_failure
            FROM clock
            CROSS JOIN taskqueue_step
            WHERE id = ANY (%(ended)s::bigint[])
        )
        {_PASS_ON_POSTGRESQL}
    """,  # noqa: S608  (of constants)
    sqlite=_MOVE.format(
        edges="""
            json_each(%(ended)s) AS ended
            CROSS JOIN taskqueue_step AS upstream ON upstream.id = ended.value
            CROSS JOIN taskqueue_dependency AS dependency ON dependency.upstream_id = upstream.id
        """,
        own="= move.downstream_id",
        returned=STEPS.columns("taskqueue_step"),
    ),
)

# Counts from the beginning: a step waits for all of its edges but those from ended steps.
_COUNT_ANEW = f"""
UPDATE taskqueue_step
SET waits = need.waits, taken = need.taken, cancels = need.cancels
FROM (
    SELECT
        dependency.downstream_id,
        count(*) FILTER (WHERE upstream.finished_at IS NULL) AS waits,
        count(*) FILTER (WHERE upstream.finished_at IS NOT NULL AND {_TAKEN}) AS taken,
        count(*) FILTER (WHERE upstream.finished_at IS NOT NULL AND {_CANCELS}) AS cancels
    FROM taskqueue_dependency AS dependency
    JOIN taskqueue_step AS upstream ON upstream.id {{upstream}}
    WHERE dependency.downstream_id {{steps}}
    GROUP BY dependency.downstream_id
) AS need
WHERE taskqueue_step.id {{own}}
"""  # noqa: S608  (of constants)
# Locks: steps of workflows that the caller has locked, and the steps returned with them.
COUNT_ANEW = Statement(
    postgresql=_COUNT_ANEW.format(
        upstream="= ANY (ARRAY[dependency.upstream_id])",
        steps="= ANY (%(steps)s::bigint[])",
        own="= ANY (ARRAY[need.downstream_id])",
    ),
    sqlite=_COUNT_ANEW.format(
        upstream="= dependency.upstream_id",
        steps="IN (SELECT value FROM json_each(%(steps)s))",
        own="= need.downstream_id",
    ),
)


def count_anew(connection: BaseDatabaseWrapper, step_ids: Sequence[int]) -> None:
    """Count what these steps wait for, regardless of earlier counts. Roots wait for nothing."""
    if step_ids:
        execute(connection, COUNT_ANEW, steps=list(step_ids))


# Locks: steps of workflows that the caller has locked.
TELL_PARENTS = Statement.of("""
    UPDATE taskqueue_step
    SET ended = taskqueue_step.ended + told.ended,
        failures = taskqueue_step.failures + told.failures,
        is_due = taskqueue_step.is_due OR taskqueue_step.status = 'running' AND (
            taskqueue_step.ended + told.ended >= taskqueue_step.members
            OR taskqueue_step.released - taskqueue_step.held < taskqueue_step.members
            OR taskqueue_step.failures + told.failures > taskqueue_step.tolerated
        )
    FROM (
        SELECT
            parent_step_id,
            count(*) AS ended,
            count(*) FILTER (WHERE status <> 'succeeded') AS failures
        FROM taskqueue_step
        WHERE id {in ended bigint}
        GROUP BY parent_step_id
    ) AS told
    WHERE taskqueue_step.id = told.parent_step_id
""")


def tell_parents(connection: BaseDatabaseWrapper, ended: Sequence[Step]) -> None:
    """Count each ended fan-out as an end of the member that returned it."""
    if fans := [step.id for step in ended if step.parent_step_id is not None]:
        execute(connection, TELL_PARENTS, ended=fans)


def pass_on(
    connection: BaseDatabaseWrapper,
    ended: Sequence[int],
    *,
    succeeded: Sequence[int] = (),
    now: datetime,
) -> list[Step]:
    """Subtract ended steps from the waits of their dependants.

    Return those that now wait for nothing. `succeeded`: further steps, which this statement ends.
    """
    ids: dict[str, Any] = {"ended": list(ended), "succeeded": list(succeeded)}
    if is_sqlite(connection) and succeeded:
        execute(connection, SUCCEED, **ids, now=now)
        ids["ended"] += succeeded
    with kept_plan(connection) as series:
        rows = select(connection, PASS_ON, **ids, now=now, series=series)
    moved = [STEPS.row(connection, row) for row in rows]
    ripe = [step for step in moved if is_ripe(step)]
    return sorted(ripe, key=attrgetter("id"))


def is_ripe(step: Step) -> bool:
    """Return whether a step waits for no other step, and all of its tasks are blocked."""
    return step.waits == 0 and step.status == StepStatus.WAITING and step.reopen_from is None


def fate(step: Step) -> StepStatus:
    """Return what happens to a step that waits for nothing more: `running` if it is released."""
    if step.cancels:
        return StepStatus.CANCELLED
    return StepStatus.RUNNING if step.taken else StepStatus.SKIPPED
