"""Compensations: undo the succeeded steps of a workflow, starting with the last to end.

They run once a workflow that has failed or was cancelled has no open step left: one at a time, each
as a separate step, under the workflow's lock.
"""

from __future__ import annotations

from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.workflow_states import OnFailure, StepKind, StepStatus, WorkflowStatus
from taskqueue.declarations.workflows.bounds import LONGEST_NAME
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.engine.workflows.requests import call_from_json
from taskqueue.engine.workflows.results import Results
from taskqueue.engine.workflows.tasks import FIRST, insert_members
from taskqueue.models import Step, Workflow


def compensate_next(connection: BaseDatabaseWrapper, workflow: Workflow, *, now: datetime) -> bool:
    """Begin the next compensation of a locked, unsuccessful workflow.

    Return whether there was one left.
    """
    steps = Step.objects.using(connection.alias).filter(workflow_id=workflow.id)
    done = compensations(steps).values("compensates_id")
    left = steps.filter(status=StepStatus.SUCCEEDED, compensate__isnull=False).exclude(id__in=done)
    step = left.order_by("-finished_at", "-id").first()
    if step is None:
        return False
    _begin(connection, workflow, step, now=now)
    workflow.status = WorkflowStatus.COMPENSATING
    workflow.open_steps += 1
    workflow.total_steps += 1
    workflow.members += 1
    fields = ["status", "open_steps", "total_steps", "members"]
    workflow.save(using=connection.alias, update_fields=fields)
    return True


def compensations(steps: QuerySet[Step]) -> QuerySet[Step]:
    """Narrow steps to those that compensate another step."""
    return steps.filter(compensates_id__isnull=False)


def note_failures(connection: BaseDatabaseWrapper, workflow: Workflow) -> None:
    """Name the compensations that failed in the error of a workflow that is about to end."""
    steps = Step.objects.using(connection.alias).filter(workflow_id=workflow.id)
    failed = list(compensations(steps).filter(status=StepStatus.FAILED).order_by("id"))
    if not failed:
        return
    undone = steps.filter(id__in=[step.compensates_id for step in failed]).order_by("id")
    names = ", ".join(undone.values_list("name", flat=True))
    error = workflow.error or Results(connection.alias, workflow.id).failure(failed[0])
    told = f"{error['message']} (compensations that failed: {names})"
    workflow.error = {**error, "message": told}


def _name(step: Step) -> str:
    """Return a name that no declared step can have."""
    name = f"{step.name} (compensation)"
    return name if len(name) <= LONGEST_NAME else f"{step.name[:60]}… (compensation {step.id})"


def _begin(
    connection: BaseDatabaseWrapper, workflow: Workflow, step: Step, *, now: datetime
) -> None:
    assert step.compensate is not None
    call = call_from_json(step.compensate)
    row = Step(
        workflow=workflow,
        name=_name(step),
        kind=StepKind.TASK.value,
        status=StepStatus.RUNNING.value,
        taken=1,
        members=1,
        released=1,
        released_at=now,
        on_failure=OnFailure.CONTINUE.value,
        request={"name": call.name},
        inputs=[step.name],
        compensates_id=step.id,
    )
    row.save(using=connection.alias)
    # The deadline of the workflow does not apply: that it passed may be why steps are undone.
    spec = EnqueueSpec.from_json(dict(call.options or {}))
    member = (row.id, FIRST, (call.args, call.kwargs))
    insert_members(connection, spec, [member], now=now, deadline_at=None)
