"""Discard what a retry makes again: fan-outs, children, and finished compensations.

They may have very many tasks. So they are moved to a separate workflow that is due to be pruned,
and workers delete them from there, a limited number of tasks per transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Sum

from taskqueue.core.workflow_states import FINAL_STEPS, StepKind, StepStatus, WorkflowStatus
from taskqueue.models import Step, StepEnd, Workflow

# No step has this id, so nobody lists the workflows below it or retries them.
NOWHERE = 0
# The most steps of one statement.
BATCH = 2000


def discard_below(
    connection: BaseDatabaseWrapper,
    workflow: Workflow,
    step_ids: Sequence[int],
    *,
    now: datetime,
) -> list[int]:
    """Discard the fan-outs and children of steps of a locked workflow. Return the discarded steps.

    The given steps stay, with their own tasks.
    """
    rows = Step.objects.using(connection.alias)
    gone: list[int] = []
    above = list(step_ids)
    while above:
        above = list(rows.filter(parent_step_id__in=above).values_list("id", flat=True))
        gone += above
    children = Workflow.objects.using(connection.alias).filter(parent_step_id__in=list(step_ids))
    if not gone and not children.exists():
        return []
    discarded = _discard(connection, workflow, gone, now=now)
    home = rows.create(
        workflow=discarded, kind=StepKind.JOIN, status=StepStatus.CANCELLED, finished_at=now
    )
    children.update(parent_step_id=home.id, parent_place=None)
    discarded.total_steps += 1
    discarded.save(using=connection.alias, update_fields=["total_steps"])
    return gone


def discard_steps(
    connection: BaseDatabaseWrapper,
    workflow: Workflow,
    step_ids: Sequence[int],
    *,
    now: datetime,
) -> list[int]:
    """Discard steps of a locked workflow with their fan-outs and children.

    Return all discarded steps.
    """
    gone = discard_below(connection, workflow, step_ids, now=now)
    _discard(connection, workflow, step_ids, now=now)
    return [*gone, *step_ids]


def _discard(
    connection: BaseDatabaseWrapper, workflow: Workflow, step_ids: Sequence[int], *, now: datetime
) -> Workflow:
    """Move steps, with everything below them, to a new, ended workflow, which is returned."""
    rows = Step.objects.using(connection.alias)
    notes = StepEnd.objects.using(connection.alias)
    batches = [step_ids[first : first + BATCH] for first in range(0, len(step_ids), BATCH)]
    members = (rows.filter(id__in=own).aggregate(sum=Sum("members"))["sum"] for own in batches)
    discarded = Workflow.objects.using(connection.alias).create(
        name=workflow.name,
        format=workflow.format,
        status=WorkflowStatus.CANCELLED,
        parent_step_id=NOWHERE,
        total_steps=len(step_ids),
        members=sum(number or 0 for number in members),
        finished_at=now,
        prune_after=now,
    )
    for own in batches:
        notes.filter(step_id__in=own).delete()
        rows.filter(id__in=own).update(
            workflow=discarded, is_due=False, parent_step_id=None, parent_place=None
        )
        # A retry may just have set them to waiting.
        open_ones = rows.filter(id__in=own).exclude(status__in=sorted(FINAL_STEPS))
        open_ones.update(status=StepStatus.CANCELLED, finished_at=now)
    return discarded
