"""Pruning workflows whose retention is over: their tasks first, and their own rows last."""

from __future__ import annotations

from collections import defaultdict
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.models import Dependency, Member, Step, StepCalls, StepEnd, Task, Workflow

# Tasks of one transaction.
BATCH = 500


def prune_workflows(connection: BaseDatabaseWrapper) -> bool:
    """Delete a batch of tasks of a workflow past its retention, or what is left of it after that.

    Its children go with it. Interrupted, it has done so much; whether there was anything to do.
    """
    with orm_transaction(connection):
        now = dialect_for(connection).now(connection)
        old = Workflow.objects.using(connection.alias).filter(prune_after__lte=now)
        workflow = old.order_by("prune_after").select_for_update(skip_locked=True).first()
        if workflow is None:
            return False
        family = _family(connection, workflow.id)
        if not _delete_tasks(connection, family):
            _delete_rows(connection, family)
    return True


def _family(connection: BaseDatabaseWrapper, workflow_id: UUID) -> list[UUID]:
    """Return a workflow with all its children, at whatever depth."""
    family = generation = [workflow_id]
    while generation:
        steps = Step.objects.using(connection.alias).filter(workflow_id__in=generation)
        children = Workflow.objects.using(connection.alias).filter(
            parent_step_id__in=steps.values("id")
        )
        generation = list(children.values_list("id", flat=True))
        family = family + generation
    return family


def _delete_tasks(connection: BaseDatabaseWrapper, family: list[UUID]) -> int:
    """Delete a batch of tasks, with their attempts and log lines; how many."""
    steps = Step.objects.using(connection.alias).filter(workflow_id__in=family)
    members = Member.objects.using(connection.alias)
    first = members.filter(step__in=steps).order_by("step_id", "place")
    found = list(first.values_list("step_id", "place", "task_id")[:BATCH])
    ids = [task_id for _, _, task_id in found]
    # Only ids are read: arguments and results may be large.
    Task.objects.using(connection.alias).filter(id__in=ids).only("id").delete()
    places: dict[int, list[int]] = defaultdict(list)
    for step_id, place, _ in found:
        places[step_id].append(place)
    for step_id, own in places.items():
        members.filter(step_id=step_id, place__in=own).delete()
    return len(found)


def _delete_rows(connection: BaseDatabaseWrapper, family: list[UUID]) -> None:
    steps = Step.objects.using(connection.alias).filter(workflow_id__in=family)
    for model in (StepCalls, StepEnd):
        model._default_manager.using(connection.alias).filter(step__in=steps).delete()
    Dependency.objects.using(connection.alias).filter(downstream__in=steps).delete()
    steps.delete()
    Workflow.objects.using(connection.alias).filter(id__in=family).delete()
