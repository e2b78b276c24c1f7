"""Apply notes of ends that do more than count: they change the context or start a fan-out.

A fold skips these notes. They are applied under the lock of their workflow, in order of the ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import takewhile
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import OuterRef, Q, Subquery

from taskqueue.core.states import TaskStatus
from taskqueue.core.workflow_states import StepStatus
from taskqueue.declarations.workflows.context import merged
from taskqueue.engine.workflows.fan_steps import FanSteps
from taskqueue.engine.workflows.releasing import LONGEST_REASON
from taskqueue.exceptions import InvalidWorkflow
from taskqueue.models import Step, StepEnd, Task, Workflow

# Notes that a fold does not count.
IS_SPECIAL = Q(updates__isnull=False) | Q(has_fan=True)
# The most notes of one transaction.
MOST_NOTES = 500


def apply_notes(
    connection: BaseDatabaseWrapper,
    workflows: Mapping[UUID, Workflow],
    *,
    now: datetime,
    take: Callable[[int], bool],
) -> list[Step]:
    """Apply the notes of locked workflows, and return the new steps of fan-outs.

    Notes beyond the bounds of one transaction are left. `take(number)` says whether `number` more
    tasks may be inserted, and if so counts them.
    """
    rows = StepEnd.objects.using(connection.alias).filter(workflow_id__in=[*workflows])
    tasks = Task.objects.filter(id=OuterRef("subject"))
    special = rows.filter(IS_SPECIAL).annotate(
        ended_at=Subquery(tasks.values("finished_at")), place=Subquery(tasks.values("place"))
    )
    in_order = special.order_by("ended_at", "subject").select_for_update(skip_locked=True)
    notes = list(in_order[:MOST_NOTES])
    if not notes:
        return []
    steps = Step.objects.using(connection.alias).filter(id__in={note.step_id for note in notes})
    running = steps.filter(status=StepStatus.RUNNING).order_by("id").select_for_update()
    parents = {step.id: step for step in running}
    fan_steps = FanSteps(connection, workflows, now=now, take=take)
    fans = fan_steps.read(
        (parents[note.step_id], note.place or 0, note.subject)
        for note in notes
        if note.has_fan and note.step_id in parents
    )
    # Notes of ended steps are left to the fold, and those that do not fit to the next transaction.
    notes = list(
        takewhile(
            lambda note: note.subject not in fans or fan_steps.fits(fans[note.subject]),
            (note for note in notes if note.step_id in parents),
        )
    )
    for note in notes:
        if note.updates is not None:
            _update(workflows[note.workflow_id], parents[note.step_id], note.updates)
        if not note.has_fan:
            _count(parents[note.step_id], note.status)
    for workflow_id in {note.workflow_id for note in notes if note.updates is not None}:
        own = Workflow.objects.using(connection.alias).filter(id=workflow_id)
        own.update(context=workflows[workflow_id].context)
    for step in parents.values():
        _save(connection, step, now)
    made = fan_steps.begin([fans[note.subject] for note in notes if note.has_fan])
    rows.filter(subject__in=[note.subject for note in notes]).delete()
    return made


def _update(workflow: Workflow, step: Step, updates: Mapping[str, Any]) -> None:
    """Change the context, or make the step fail if the change is refused."""
    try:
        workflow.context = merged(workflow.context, [updates])
    except InvalidWorkflow as error:
        step.reason = step.reason or str(error)[:LONGEST_REASON]


def _count(step: Step, status: str) -> None:
    step.ended += 1
    step.failures += status != TaskStatus.SUCCEEDED


def _save(connection: BaseDatabaseWrapper, step: Step, now: datetime) -> None:
    members = step.members or 0
    step.counted_at = now
    step.is_due = (
        step.is_due
        or step.ended >= members
        or step.released - step.held < members
        or step.failures > step.tolerated
        or bool(step.reason)
    )
    fields = ["ended", "failures", "reason", "is_due", "counted_at"]
    step.save(using=connection.alias, update_fields=fields)
