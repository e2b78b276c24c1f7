"""Reconcile: count the steps of workflows that do not advance again.

The transaction that writes an end also writes a note of it. Without a note, for example because of
an older version, a workflow would wait forever; the recount limits the delay to a minute.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Max

from taskqueue.core.workflow_states import StepStatus, WorkflowStatus
from taskqueue.declarations.workflows.graph import FORMAT
from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.dialect import dialect_for, execute
from taskqueue.engine.statement import Moment, Statement
from taskqueue.engine.workflows.counting import counted
from taskqueue.engine.workflows.counts import count_repairs
from taskqueue.engine.workflows.inserting import STILL
from taskqueue.engine.workflows.rounds import look_again
from taskqueue.models import Step, Workflow

logger = logging.getLogger("taskqueue.engine")

# The wait until the next look is as long as the workflow has stood still, up to this: a workflow
# that waits for a long task is looked at ever more rarely.
LONGEST = timedelta(minutes=10)
# The most workflows of one transaction. Workflows are added until their members exceed the second
# number; a wider workflow is counted in a transaction by itself.
BATCH, MOST_MEMBERS = 50, 20_000
NEXT_RECOUNT = Moment.of("""
    SELECT min(recount_at)
    FROM taskqueue_workflow
    WHERE recount_at IS NOT NULL AND finished_at IS NULL AND paused_at IS NULL
""")
# The fields of a workflow that are read.
READ = ("name", "status", "members", "moved_at")
# Locks: workflows that the caller has locked. It is SQL because building an update of many rows
# with the ORM took half the time of a recount.
PUT_OFF = Statement(
    postgresql="""
        UPDATE taskqueue_workflow
        SET recount_at = %(now)s::timestamptz + given.seconds * interval '1 second'
        FROM unnest(%(ids)s::uuid[], %(waits)s::float8[]) AS given (id, seconds)
        WHERE taskqueue_workflow.id = ANY (ARRAY[given.id])
    """,
    sqlite="""
        UPDATE taskqueue_workflow
        SET recount_at = strftime('%%Y-%%m-%%d %%H:%%M:%%f', %(now)s, wait.value || ' seconds')
        FROM json_each(%(ids)s) AS given
        CROSS JOIN json_each(%(waits)s) AS wait ON wait.key = given.key
        WHERE taskqueue_workflow.id = given.value
    """,
)


def reconcile(connection: BaseDatabaseWrapper) -> bool:
    """Count the steps of some workflows that stand still. Return whether there may be more of them.

    Each correction is logged as an error, and lets the workflow go on.
    """
    with orm_transaction(connection):
        now = dialect_for(connection).now(connection)
        rows = Workflow.objects.using(connection.alias).filter(
            recount_at__lte=now, finished_at=None, paused_at=None, format__lte=FORMAT
        )
        due = rows.order_by("recount_at").only(*READ).select_for_update(skip_locked=True)
        found = list(due[:BATCH])
        totals = accumulate(workflow.members for workflow in found)
        few = bisect_right(list(totals), MOST_MEMBERS)
        workflows = {workflow.id: workflow for workflow in found[: max(1, few)]}
        still = _put_off(connection, workflows, now)
        if still:
            _repair(connection, still)
    look_again(connection, [workflow.id for workflow in found])
    return len(workflows) < len(found) or len(found) == BATCH


def _put_off(
    connection: BaseDatabaseWrapper, workflows: dict[UUID, Workflow], now: datetime
) -> list[Workflow]:
    """Write when to look at these workflows next. Return those that stand still."""
    running = Step.objects.using(connection.alias).filter(
        workflow__in=[*workflows], status=StepStatus.RUNNING, counted_at__isnull=False
    )
    last = running.values_list("workflow").annotate(Max("counted_at")).order_by()
    counted_at = dict(last)
    still: list[Workflow] = []
    waits: dict[str, float] = {}
    for workflow in workflows.values():
        idle = now - max(workflow.moved_at, counted_at.get(workflow.id, workflow.moved_at))
        wait = STILL - idle
        if idle >= STILL:
            wait = min(idle, LONGEST)
            still.append(workflow)
        waits[workflow.id.hex] = wait.total_seconds()
    execute(connection, PUT_OFF, now=now, ids=list(waits), waits=list(waits.values()))
    return still


def _repair(connection: BaseDatabaseWrapper, workflows: Sequence[Workflow]) -> None:
    """Correct the counts of running steps, under locks that keep folds from changing them."""
    known = {workflow.id: workflow for workflow in workflows}
    rows = Step.objects.using(connection.alias).filter(workflow__in=[*known])
    running = rows.filter(status=StepStatus.RUNNING).order_by("id")
    locked = {step.id: step for step in running.only(*_COUNTS).select_for_update()}
    members = {step.id: step.members or 0 for step in locked.values()}
    found = counted(connection, members, list(known))
    repaired = []
    for step in locked.values():
        workflow = known[step.workflow_id]
        before, after = (step.ended, step.failures), found[step.id]
        step.ended, step.failures = after
        if before != after or (not step.is_due and _is_overlooked(workflow, step)):
            logger.error(
                "Workflow repaired workflow=%s step=%s counted=%s/%s found=%s/%s",
                workflow.id, step.id, *before, *after,
            )  # fmt: skip
            step.is_due = True
            repaired.append(step)
    rows.bulk_update(repaired, ["ended", "failures", "is_due"])
    count_repairs(connection, [known[step.workflow_id].name for step in repaired])


_COUNTS = (
    "workflow_id", "members", "released", "ended", "failures", "concurrency", "tolerated", "is_due",
    "held",
)  # fmt: skip


def _is_overlooked(workflow: Workflow, step: Step) -> bool:
    """Return whether an end has decided something for the step, but it was not marked as due."""
    members = step.members or 0
    if step.ended >= members:
        return True
    room = members if step.concurrency is None else step.concurrency
    return (
        workflow.status == WorkflowStatus.RUNNING
        and step.released - step.held < members
        and step.failures <= step.tolerated
        and step.released - step.held - step.ended < room
    )
