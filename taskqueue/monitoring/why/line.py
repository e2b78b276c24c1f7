"""Where a ready task stands in the line of its queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Q, QuerySet

from taskqueue.core.states import TaskStatus
from taskqueue.engine.connections import project_connection
from taskqueue.models import Task
from taskqueue.models.task import Route
from taskqueue.monitoring.counts import CAP
from taskqueue.monitoring.searching.streams import IS_APART, IS_READY, literal
from taskqueue.monitoring.why import codes
from taskqueue.monitoring.why.reason import Reason
from taskqueue.monitoring.why.surroundings import Surroundings


def in_line(around: Surroundings) -> Iterator[Reason]:
    """How many go first, up to a cap, and whether there is a free slot."""
    task = around.task
    takers = [each for each in around.serving if each.takes_tasks]
    if task.worker_names is not None:
        takers = [each for each in takers if each.name in task.worker_names]
    slots = sum(each.slots for each in takers)
    if slots and all(each.busy >= each.slots for each in takers):
        yield Reason(code=codes.SLOTS_BUSY, subject=task.queue_name, details={"slots": slots})
    higher, equal = _ahead(task)
    if higher + equal > CAP:
        yield Reason(code=codes.BEHIND, subject=task.queue_name, details={"at_least": CAP})
    elif higher + equal:
        details = {"ahead": higher + equal, "higher": higher}
        yield Reason(code=codes.BEHIND, subject=task.queue_name, details=details)
    else:
        yield Reason(code=codes.IN_LINE, subject=task.queue_name)


def _ahead(task: Task) -> tuple[int, int]:
    """How many tasks of higher and of equal priority are taken before it, each up to the cap.

    Each part is a range of the index that the claim goes by. One for certain workers goes before
    ordinary ones of its priority, and behind those that have its pin.
    """
    ready = Task.objects.using(project_connection().alias).filter(
        queue_name=task.queue_name, status=TaskStatus.READY.value
    )
    ordinary = ready.filter(literal(IS_READY))
    higher = _counted(ordinary.filter(priority__gt=task.priority))
    if task.route == Route.ORDINARY:
        return higher, _equal(ordinary, task)
    apart = ready.filter(literal(IS_APART), pinned_to=task.pinned_to)
    higher += _counted(apart.filter(priority__gt=task.priority))
    equal = _equal(apart, task)
    return higher, equal if task.worker_names is not None else equal + _equal(ordinary, task)


def _equal(tasks: QuerySet[Task], task: Task) -> int:
    same: Any = tasks.filter(priority=task.priority)
    earlier = _counted(same.filter(run_after__lt=task.run_after))
    return earlier + _counted(same.filter(Q(run_after=task.run_after, id__lt=task.id)))


def _counted(tasks: QuerySet[Task]) -> int:
    """Up to the cap; the order keeps the planner from reading the table in place of the index."""
    return tasks.order_by("-priority", "run_after", "id")[: CAP + 1].count()
