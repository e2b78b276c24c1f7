"""Stopping workflows: what waits is cancelled, and what runs is asked to stop.

The caller holds the workflow's lock. Tasks, leases and children that somebody else has locked are
left to the next turn: nobody who holds one of these waits for a workflow, nor is waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, QuerySet

from taskqueue.core.workflow_states import FINAL_WORKFLOWS, StepKind, StepStatus, WorkflowStatus
from taskqueue.engine.control.audit import Person
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.control.tasks import UNFINISHED, cancel_each
from taskqueue.engine.dialect import as_uuid, select
from taskqueue.engine.statement import Statement
from taskqueue.engine.workflows.tasks import cancel_blocked
from taskqueue.models import Step, Workflow

HAVE_CHILDREN = frozenset({StepKind.WORKFLOW, StepKind.MAP})
# Tasks and children that one transaction stops.
MOST_STOPPED = 500
# The step and the place behind which the next transaction goes on.
STOPPED_TO = ("stopped_step_id", "stopped_place")
BEFORE_ALL = -1
FROM_THE_START = (0, BEFORE_ALL)

# In the order of the members' key, each with its task by its key: whatever the statistics say of a
# table that has just been filled, nothing is sorted, and no other task is read.
_TO_STOP = """
SELECT task.id, member.step_id, member.place
FROM taskqueue_member AS member
{task}
WHERE member.step_id {steps} AND member.place > %(after)s AND (
    task.status IN ('blocked', 'ready', 'retrying', 'scheduled')
    OR task.status = 'running' AND EXISTS (
        SELECT 1
        FROM taskqueue_lease AS lease
        WHERE lease.task_id = task.id
            AND lease.status = 'running' AND lease.stop_requested_at IS NULL
    )
)
ORDER BY member.step_id, member.place
LIMIT %(limit)s
"""
TO_STOP = Statement(
    postgresql=_TO_STOP.format(
        task="""CROSS JOIN LATERAL (
    SELECT id, status FROM taskqueue_task WHERE id = member.task_id OFFSET 0
) AS task""",
        steps="= ANY (%(steps)s::bigint[])",
    ),
    sqlite=_TO_STOP.format(
        task="CROSS JOIN taskqueue_task AS task ON task.id = member.task_id",
        steps="IN (SELECT value FROM json_each(%(steps)s))",
    ),
)


def request_stop(
    connection: BaseDatabaseWrapper,
    workflow: Workflow,
    *,
    now: datetime,
    reason: str,
    by: str = "",
    error: dict[str, Any] | None = None,
) -> None:
    """Let nothing more of a locked workflow be released. With an error it ends as failed."""
    workflow.status = WorkflowStatus.STOPPING
    workflow.stop_requested_at = workflow.stop_requested_at or now
    workflow.stop_requested_by, workflow.stop_reason = by, reason
    workflow.error = workflow.error or error
    workflow.stopped_step_id, workflow.stopped_place = FROM_THE_START
    workflow.save(
        using=connection.alias,
        update_fields=[
            "status", "stop_requested_at", "stop_requested_by", "stop_reason", "error", *STOPPED_TO,
        ],
    )  # fmt: skip


def cancel_steps(
    connection: BaseDatabaseWrapper, steps: Sequence[Step], *, most: int
) -> tuple[int, list[Step]]:
    """Cancel the blocked tasks of steps that are not released, so many at most.

    Return how many there were, and the steps that may have more of them. The calls of maps are
    kept, and their children: a retry sends them.
    """
    has_tasks = [
        step
        for step in steps
        if step.kind == StepKind.TASK
        or (step.kind == StepKind.MAP and (step.released or step.reopen_from is not None))
    ]
    number, last = 0, None
    if has_tasks and most > 0:
        ids = [step.id for step in has_tasks]
        number, last = cancel_blocked(connection, ids, limit=most)
    left = has_tasks
    if number < most:
        left = []
    elif last is not None:  # Tasks were found in the order of their steps.
        left = [step for step in has_tasks if step.id >= last]
    done = {step.id for step in steps} - {step.id for step in left}
    held_children(connection, sorted(done)).update(finished_at=F("moved_at"))
    return number, left


def held_children(connection: BaseDatabaseWrapper, step_ids: Sequence[int]) -> QuerySet[Workflow]:
    """Return the children of maps that a retry is to run again, and that were not sent yet."""
    children = Workflow.objects.using(connection.alias).filter(
        parent_step_id__in=step_ids, parent_place__isnull=False,
        status__in=sorted(FINAL_WORKFLOWS), finished_at=None,
    )  # fmt: skip
    return children.order_by("parent_step_id", "parent_place")


def stop_some(connection: BaseDatabaseWrapper, workflow: Workflow, *, now: datetime) -> int:
    """Stop what runs of a locked workflow, up to a bound; how many tasks."""
    rows = Step.objects.using(connection.alias).filter(workflow_id=workflow.id)
    running = list(rows.filter(status=StepStatus.RUNNING).order_by("id"))
    if not running:
        return 0
    ids = _to_stop(connection, workflow, [step.id for step in running])
    if ids:
        person = Person(workflow.stop_requested_by, workflow.stop_reason)
        selection = Selection(
            connection=connection, ids=ids, statuses=UNFINISHED, person=person, is_bulk=True
        )
        cancel_each(selection, ended_by="")
    children = Workflow.objects.using(connection.alias).filter(
        parent_step_id__in=[step.id for step in running if step.kind in HAVE_CHILDREN],
        status__in=[WorkflowStatus.RUNNING, WorkflowStatus.STOPPING],
    )
    for child in children.order_by("id").select_for_update(skip_locked=True)[:MOST_STOPPED]:
        if child.status == WorkflowStatus.RUNNING:
            reason, by = workflow.stop_reason, workflow.stop_requested_by
            request_stop(connection, child, now=now, reason=reason, by=by)
    return len(ids)


def _to_stop(
    connection: BaseDatabaseWrapper, workflow: Workflow, step_ids: Sequence[int]
) -> list[UUID]:
    """Return tasks of these steps that wait, or run and were not asked to stop yet.

    It goes on behind the last one of the turn before, and begins anew after the last of all.
    """
    step_id, place = workflow.stopped_step_id, workflow.stopped_place
    turns = [([id for id in step_ids if id > step_id], BEFORE_ALL)]
    if step_id in step_ids:
        turns.insert(0, ([step_id], place))
    found: list[tuple[Any, int, int]] = []
    for ids, after in turns:
        if ids and (left := MOST_STOPPED - len(found)):
            found += select(connection, TO_STOP, steps=ids, after=after, limit=left)
    is_full = len(found) == MOST_STOPPED
    last = found[-1][1:] if is_full else FROM_THE_START
    if last != (step_id, place):
        workflow.stopped_step_id, workflow.stopped_place = last
        workflow.save(using=connection.alias, update_fields=STOPPED_TO)
    return [as_uuid(task_id) for task_id, *_ in found]
