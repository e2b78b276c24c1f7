"""Cancel claimed tasks of a stopping workflow before they start.

A stop cancels 500 tasks per transaction. Workers that claim the next tasks of a wide map would be
faster than it, and would start one task after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.core.workflow_states import WorkflowStatus
from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.control.audit import Person
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.control.tasks import UNFINISHED, cancel_each
from taskqueue.engine.dialect import as_uuid, dialect_for, select
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.rows import Claimed
from taskqueue.engine.statement import Statement
from taskqueue.engine.tally import Tally
from taskqueue.engine.workflows.stopping import request_stop
from taskqueue.models import Workflow

# The workflow of each task, then the workflow whose step runs that one, and so on up to the first
# that is not running. Each row is found by its key, whatever the statistics say.
_ABOVE = """
WITH RECURSIVE above (task_id, depth, id, status, parent_step_id, by, reason) AS (
    SELECT
        task.id, 0, workflow.id, workflow.status, workflow.parent_step_id,
        workflow.stop_requested_by, workflow.stop_reason
    FROM {tasks} AS task
    {own_step}
    {own_workflow}
    UNION ALL
    SELECT
        above.task_id, above.depth + 1, workflow.id, workflow.status, workflow.parent_step_id,
        workflow.stop_requested_by, workflow.stop_reason
    FROM above
    {step}
    {workflow}
    WHERE above.status = 'running'
)
SELECT task_id, id, status, by, reason
FROM above
ORDER BY task_id, depth
"""
_BY_KEY = """CROSS JOIN LATERAL (
        SELECT {columns} FROM {table} WHERE id = {key} OFFSET 0
    ) AS {name}"""
_STEP = {"columns": "workflow_id", "table": "taskqueue_step", "name": "step"}
_WORKFLOW = {
    "columns": "id, status, parent_step_id, stop_requested_by, stop_reason",
    "table": "taskqueue_workflow", "name": "workflow", "key": "step.workflow_id",
}  # fmt: skip
ABOVE = Statement(
    postgresql=_ABOVE.format(
        tasks="""unnest(%(tasks)s::uuid[]) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT id, step_id FROM taskqueue_task WHERE id = wanted.id OFFSET 0
    )""",
        own_step=_BY_KEY.format(**_STEP, key="task.step_id"),
        own_workflow=_BY_KEY.format(**_WORKFLOW),
        step=_BY_KEY.format(**_STEP, key="above.parent_step_id"),
        workflow=_BY_KEY.format(**_WORKFLOW),
    ),
    sqlite=_ABOVE.format(
        tasks="""json_each(%(tasks)s) AS wanted
    CROSS JOIN taskqueue_task""",
        own_step="""ON task.id = wanted.value
    CROSS JOIN taskqueue_step AS step ON step.id = task.step_id""",
        own_workflow="CROSS JOIN taskqueue_workflow AS workflow ON workflow.id = step.workflow_id",
        step="CROSS JOIN taskqueue_step AS step ON step.id = above.parent_step_id",
        workflow="CROSS JOIN taskqueue_workflow AS workflow ON workflow.id = step.workflow_id",
    ),
)


class _Above(NamedTuple):
    """The workflow of a task, or one of the workflows above it."""

    task_id: Any
    id: Any
    status: str
    by: str
    reason: str


class Unstarted(NamedTuple):
    """The claimed tasks that must not start."""

    # Leases that this call has ended, and workflows that are stopping.
    lease_ids: frozenset[int]
    workflow_ids: frozenset[UUID]


NONE = Unstarted(frozenset(), frozenset())


def cancel_unstarted(
    connection: BaseDatabaseWrapper,
    claimed: Sequence[Claimed],
    *,
    policy: EndPolicy,
    tally: Tally,
) -> Unstarted:
    """Cancel claimed tasks of stopping workflows, as if nobody had claimed them.

    Children of such workflows are stopped too, unless another session has locked them. Locks:
    children, leases, tasks; it waits for none of them except the caller's own leases.
    """
    rows = select(connection, ABOVE, tasks=[UUID(row.task_id).hex for row in claimed])
    chains: dict[UUID, list[_Above]] = {}
    for row in map(_Above._make, rows):
        chains.setdefault(as_uuid(row.task_id), []).append(row)
    stopped = {
        task_id: chain
        for task_id, chain in chains.items()
        if chain[-1].status == WorkflowStatus.STOPPING
    }
    if not stopped:
        return NONE
    with tally.guard(), orm_transaction(connection):
        stopping = _stop_children(connection, stopped)
        alike: dict[Person, list[UUID]] = {}
        for task_id, chain in stopped.items():
            if as_uuid(chain[0].id) in stopping:
                person = Person(chain[-1].by, chain[-1].reason)
                alike.setdefault(person, []).append(task_id)
        chosen = {task_id for ids in alike.values() for task_id in ids}
        own = [row for row in claimed if UUID(row.task_id) in chosen]
        outcomes = [Outcome(row.lease_id, OutcomeKind.UNSTARTED, ended=0.0) for row in own]
        # A lease that another session has ended can no longer be given back by this worker.
        held = record(connection, outcomes, policy=policy, tally=tally) if outcomes else {}
        is_held = {UUID(row.task_id) for row in own if row.lease_id in held}
        for person, ids in alike.items():
            selection = Selection(
                connection=connection,
                ids=[task_id for task_id in ids if task_id in is_held],
                statuses=UNFINISHED,
                person=person,
                is_bulk=True,
            )
            cancel_each(selection, ended_by="")
    above = {as_uuid(row.id) for chain in stopped.values() for row in chain}
    return Unstarted(frozenset(row.lease_id for row in own), frozenset(above))


def _stop_children(
    connection: BaseDatabaseWrapper, chains: Mapping[UUID, Sequence[_Above]]
) -> set[UUID]:
    """Stop the child workflows below stopping ones. Return all workflows that are then stopping."""
    last = [chain[-1] for chain in chains.values()]
    stopping = {as_uuid(row.id) for row in last}
    below = {as_uuid(row.id): chain[-1] for chain in chains.values() for row in chain[:-1]}
    if below:
        now = dialect_for(connection).now(connection)
        children = Workflow.objects.using(connection.alias).filter(
            id__in=sorted(below), status=WorkflowStatus.RUNNING
        )
        for child in children.order_by("id").select_for_update(skip_locked=True):
            request = below[child.id]
            request_stop(connection, child, now=now, reason=request.reason, by=request.by)
            stopping.add(child.id)
    return stopping
