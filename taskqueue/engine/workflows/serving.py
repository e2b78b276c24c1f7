"""The duties of workflows: unfinished advances, passed deadlines, and stops under way."""

from __future__ import annotations

import time
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.declarations.workflows.graph import FORMAT
from taskqueue.engine.connections import installed, orm_transaction
from taskqueue.engine.dialect import as_uuid, dialect_for, select
from taskqueue.engine.statement import Fact, Moment, Statement
from taskqueue.engine.workflows.advancing import MOST_WORKFLOWS, Advance
from taskqueue.engine.workflows.locking import lock_workflows
from taskqueue.engine.workflows.rounds import advance, fold, left_of
from taskqueue.engine.workflows.stopping import request_stop
from taskqueue.models import Workflow

DEADLINE = {
    "error_class": "taskqueue.exceptions.DeadlineExceeded",
    "message": "The deadline of the workflow passed before it ended.",
    "task_id": None,
}
HAS_WORKFLOWS = Fact.of("""
    EXISTS (SELECT 1 FROM taskqueue_stepend)
    OR EXISTS (SELECT 1 FROM taskqueue_step WHERE is_due)
    OR EXISTS (SELECT 1 FROM taskqueue_workflow WHERE status = 'stopping')
""")
NEXT_WORKFLOW_DEADLINE = Moment.of("""
    SELECT min(deadline_at)
    FROM taskqueue_workflow
    WHERE deadline_at IS NOT NULL AND finished_at IS NULL AND status = 'running'
""")
# The work left for any workflow: steps with noted ends, or null if a step is due or a stop goes on.
MOST_LEFT = 1000
LEFT = Statement.of(f"""
    SELECT workflow_id, step_id, count(*) FROM
        (SELECT workflow_id, step_id FROM taskqueue_stepend LIMIT {MOST_LEFT}) AS noted
    GROUP BY workflow_id, step_id
    UNION ALL
    SELECT workflow_id, NULL, 0 FROM
        (SELECT workflow_id FROM taskqueue_step WHERE is_due LIMIT {MOST_LEFT}) AS due
    UNION ALL
    SELECT id, NULL, 0 FROM
        (
            SELECT id
            FROM taskqueue_workflow
            WHERE status = 'stopping' AND (stops_again_at IS NULL OR stops_again_at <= {{now}})
            LIMIT {MOST_LEFT}
        ) AS stopping
""")  # noqa: S608  (of constants)
# How often a cancel retries tasks that others had locked, and the seconds between tries.
STOP_TRIES, STOP_PAUSE = 4, 0.05


def serve(connection: BaseDatabaseWrapper) -> bool:
    """Do the work that is left for any workflow. Return whether there may be more of it.

    Ends that decide nothing are counted only once per call: workers note more all the time, and
    count them too.
    """
    with installed(connection):
        rows = select(connection, LEFT)
        steps = {step_id for _, step_id, _ in rows if step_id is not None}
        due = {as_uuid(workflow_id) for workflow_id, step_id, _ in rows if step_id is None}
        folded = fold(connection, steps) if steps else []
        due |= {as_uuid(step.workflow_id) for step in folded if step.is_due}
        # Notes that an advance could not apply still exist: their step stays due.
        has_counted = any(not step.is_due for step in folded)
        has_more = has_counted and sum(number for _, _, number in rows) == MOST_LEFT
        return advance(connection, due) or has_more


def end_overdue(connection: BaseDatabaseWrapper) -> bool:
    """Stop workflows whose deadlines have passed. Return whether there were any."""
    with orm_transaction(connection):
        now = dialect_for(connection).now(connection)
        rows = Workflow.objects.using(connection.alias).filter(
            deadline_at__lte=now, finished_at=None, status="running", format__lte=FORMAT
        )
        overdue = rows.order_by("deadline_at").select_for_update(skip_locked=True)
        found = list(overdue[:MOST_WORKFLOWS])
        for workflow in found:
            reason = str(DEADLINE["message"])
            request_stop(connection, workflow, now=now, reason=reason, error=DEADLINE)
    advance(connection, [workflow.id for workflow in found])
    return bool(found)


def stop_missed(connection: BaseDatabaseWrapper, workflow_id: UUID) -> None:
    """Stop tasks that others had locked while a cancel stopped the rest.

    Workers do it after some tries.
    """
    for _ in range(STOP_TRIES):
        time.sleep(STOP_PAUSE)
        with orm_transaction(connection):
            locked = lock_workflows(connection, [workflow_id])
            if locked is None:
                return
            step = Advance(connection, locked.workflows, now=locked.now)
            step.run(locked.due)
        advance(connection, left_of(connection, [workflow_id], step.told))
        if not step.has_missed:
            return
