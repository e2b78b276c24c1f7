"""Prune workflows whose retention is over: their tasks first, their own rows last."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.statement import Moment
from taskqueue.models import Dependency, Member, Step, StepCalls, StepEnd, Task, Workflow

# The most tasks of one transaction, and the most workflows whose tasks are looked for at once.
BATCH, MOST_WORKFLOWS = 500, 100
NEXT_PRUNE = Moment.of("""
    SELECT min(prune_after) FROM taskqueue_workflow WHERE prune_after IS NOT NULL
""")


def prune_workflows(connection: BaseDatabaseWrapper) -> bool:
    """Delete a batch. Return whether there was anything to delete."""
    return prune_batch(connection) is not None


def prune_batch(connection: BaseDatabaseWrapper) -> int | None:
    """Delete a batch of tasks of a workflow past its retention, and of its children.

    Each batch is a transaction, so an interruption loses nothing that was deleted before. Return
    how many workflows are gone, not counting children; None if no workflow is past its retention.
    """
    with orm_transaction(connection):
        now = dialect_for(connection).now(connection)
        old = past_retention(connection, now).select_for_update(skip_locked=True)
        workflow = old.first()
        if workflow is None:
            return None
        return 1 if delete_some(connection, workflow.id) else 0


def past_retention(connection: BaseDatabaseWrapper, now: datetime) -> QuerySet[Workflow]:
    """Return the workflows that are past their retention, the longest overdue first."""
    old = Workflow.objects.using(connection.alias).filter(prune_after__lte=now)
    return old.order_by("prune_after")


def delete_some(connection: BaseDatabaseWrapper, workflow_id: UUID) -> bool:
    """Delete a batch of tasks of a locked workflow and its children.

    Return whether all of it is gone. The most deeply nested workflows are deleted first, each with
    its own rows after its last task.
    """
    left = BATCH
    while left > 0:
        some = _deepest(connection, workflow_id)
        steps = Step.objects.using(connection.alias).filter(workflow_id__in=some)
        number = _delete_tasks(connection, steps, left)
        if number == left:
            return False
        left -= number + len(some)
        _delete_steps(connection, steps)
        Workflow.objects.using(connection.alias).filter(id__in=some).delete()
        if some == [workflow_id]:
            return True
    return False


def _deepest(connection: BaseDatabaseWrapper, workflow_id: UUID) -> list[UUID]:
    """Return some of the workflow's deepest descendants, or itself if it has no children."""
    some = children = [workflow_id]
    while children:
        some = children
        steps = Step.objects.using(connection.alias).filter(workflow_id__in=some)
        below = Workflow.objects.using(connection.alias).filter(
            parent_step_id__in=steps.values("id")
        )
        children = list(below.values_list("id", flat=True)[:MOST_WORKFLOWS])
    return some


def family_of(connection: BaseDatabaseWrapper, workflow_id: UUID) -> list[UUID]:
    """Return the ids of a workflow and of all its descendants."""
    family = generation = [workflow_id]
    while generation:
        steps = Step.objects.using(connection.alias).filter(workflow_id__in=generation)
        children = Workflow.objects.using(connection.alias).filter(
            parent_step_id__in=steps.values("id")
        )
        generation = list(children.values_list("id", flat=True))
        family = family + generation
    return family


def delete_members(connection: BaseDatabaseWrapper, step_id: int, most: int) -> int:
    """Delete up to `most` tasks of a step. Return how many were deleted."""
    number = 0
    own = Step.objects.using(connection.alias).filter(id=step_id)
    while number < most:
        limit = min(BATCH, most - number)
        deleted = _delete_tasks(connection, own, limit)
        number += deleted
        if deleted < limit:
            break
    return number


def _delete_tasks(
    connection: BaseDatabaseWrapper, steps: QuerySet[Step], limit: int | None = None
) -> int:
    """Delete a batch of tasks with their attempts and log lines. Return how many were deleted."""
    limit = BATCH if limit is None else limit
    members = Member.objects.using(connection.alias)
    first = members.filter(step__in=steps).order_by("step_id", "place")
    found = list(first.values_list("step_id", "place", "task_id")[:limit])
    ids = [task_id for _, _, task_id in found]
    # Only ids are read, because arguments and results may be large.
    Task.objects.using(connection.alias).filter(id__in=ids).only("id").delete()
    places: dict[int, list[int]] = defaultdict(list)
    for step_id, place, _ in found:
        places[step_id].append(place)
    for step_id, own in places.items():
        members.filter(step_id=step_id, place__in=own).delete()
    return len(found)


def _delete_steps(connection: BaseDatabaseWrapper, steps: QuerySet[Step]) -> None:
    for model in (StepCalls, StepEnd):
        model._default_manager.using(connection.alias).filter(step__in=steps).delete()
    Dependency.objects.using(connection.alias).filter(downstream__in=steps).delete()
    steps.delete()
