"""Count the pending notes of one workflow before somebody changes it by hand."""

from __future__ import annotations

from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.workflows.advancing import MOST_FOLDED, Advance
from taskqueue.engine.workflows.locking import lock_workflows
from taskqueue.models import Step, StepEnd, Workflow


def count_pending(connection: BaseDatabaseWrapper, workflow: Workflow, *, now: datetime) -> None:
    """Count the noted ends of a locked workflow, and advance it."""
    steps = Step.objects.using(connection.alias).filter(workflow_id=workflow.id)
    # After this, no other session has a fold of these steps under way.
    list(steps.order_by("id").select_for_update().values_list("id", flat=True))
    notes = StepEnd.objects.using(connection.alias).filter(workflow_id=workflow.id)
    before = None
    while True:
        noted = sorted(set(notes.values_list("step_id", flat=True)))
        for first in range(0, len(noted), MOST_FOLDED):
            dialect_for(connection).fold(connection, noted[first : first + MOST_FOLDED])
        if locked := lock_workflows(connection, [workflow.id]):
            Advance(connection, locked.workflows, now=now).run(locked.due)
        left = notes.count()
        if left in (0, before):
            break
        before = left
    workflow.refresh_from_db(using=connection.alias)
