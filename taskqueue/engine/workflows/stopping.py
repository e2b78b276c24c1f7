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
from django.db.models import Q

from taskqueue.core.states import PENDING, LeaseStatus, TaskStatus
from taskqueue.core.workflow_states import StepKind, StepStatus, WorkflowStatus
from taskqueue.engine.control.audit import Person
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.control.tasks import UNFINISHED, cancel_each
from taskqueue.engine.ends import cancel_waiting
from taskqueue.engine.workflows.tasks import drop_calls, tasks_of
from taskqueue.models import Lease, Step, Workflow

# Tasks and children that one transaction stops.
MOST_STOPPED = 500


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
    workflow.save(
        using=connection.alias,
        update_fields=[
            "status", "stop_requested_at", "stop_requested_by", "stop_reason", "error",
        ],
    )  # fmt: skip


def cancel_steps(connection: BaseDatabaseWrapper, steps: Sequence[Step]) -> None:
    """Cancel the blocked tasks of steps that are not released, and drop the calls of maps."""
    ids = [step.id for step in steps if step.kind == StepKind.TASK]
    if ids:
        blocked = tasks_of(connection, ids).filter(status=TaskStatus.BLOCKED)
        tasks = list(blocked.order_by("id").select_for_update(skip_locked=True))
        cancel_waiting(connection, tasks, reason="Its step was not released.")
    maps = [step.id for step in steps if step.kind == StepKind.MAP]
    if maps:
        drop_calls(connection, maps)


def stop_some(connection: BaseDatabaseWrapper, workflow: Workflow, *, now: datetime) -> bool:
    """Stop what runs of a locked workflow, up to a bound; whether there may be more."""
    rows = Step.objects.using(connection.alias).filter(workflow_id=workflow.id)
    running = list(rows.filter(status=StepStatus.RUNNING).order_by("id"))
    if not running:
        return False
    ids = _to_stop(connection, [step.id for step in running])
    if ids:
        person = Person(workflow.stop_requested_by, workflow.stop_reason)
        selection = Selection(
            connection=connection, ids=ids, statuses=UNFINISHED, person=person, is_bulk=True
        )
        cancel_each(selection, ended_by="")
    children = Workflow.objects.using(connection.alias).filter(
        parent_step_id__in=[step.id for step in running if step.kind == StepKind.WORKFLOW],
        status__in=[WorkflowStatus.RUNNING, WorkflowStatus.STOPPING],
    )
    for child in children.order_by("id").select_for_update(skip_locked=True)[:MOST_STOPPED]:
        if child.status == WorkflowStatus.RUNNING:
            reason, by = workflow.stop_reason, workflow.stop_requested_by
            request_stop(connection, child, now=now, reason=reason, by=by)
    return len(ids) == MOST_STOPPED


def _to_stop(connection: BaseDatabaseWrapper, step_ids: Sequence[int]) -> list[UUID]:
    """Return tasks of these steps that wait, or run and were not asked to stop yet."""
    unasked = Lease.objects.using(connection.alias).filter(
        status=LeaseStatus.RUNNING, stop_requested_at=None
    )
    tasks: Any = tasks_of(connection, step_ids).filter(
        Q(status__in=sorted(PENDING))
        | Q(status=TaskStatus.RUNNING.value, id__in=unasked.values("task_id"))
    )
    found: list[UUID] = list(tasks.order_by("id").values_list("id", flat=True)[:MOST_STOPPED])
    return found
