"""Why steps of workflows failed: the errors of their tasks and children."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Subquery

from taskqueue.core.states import TaskStatus
from taskqueue.core.workflow_states import StepKind, StepStatus
from taskqueue.engine.connections import database_alias
from taskqueue.models import Member, Step, Task, Workflow
from taskqueue.monitoring.read_models.base import about

UNSUCCESSFUL = [TaskStatus.FAILED.value, TaskStatus.CANCELLED.value]
OF_TASK = ("step_id", "task_id", "task__status", "task__error_class", "task__error_message")
# Up to this many members, each is checked; of a wider step, the ends since its release.
NARROW, MOST_LOOKED_AT = 5_000, 10_000


@dataclass(frozen=True, kw_only=True)
class ShownError:
    """Why a step or a workflow failed."""

    error_class: str
    message: str
    task_id: UUID | None = about("The task that failed; it may have been pruned since.")


def shown_error(stored: Mapping[str, Any] | None) -> ShownError | None:
    """Make the read model of an error in the form in which a workflow stores it."""
    if stored is None:
        return None
    return ShownError(
        error_class=str(stored.get("error_class", "")),
        message=str(stored.get("message", "")),
        task_id=UUID(str(stored["task_id"])) if stored.get("task_id") else None,
    )


def errors_of(
    rows: Iterable[Step],
    tasks: Mapping[int, dict[str, Any]],
    children: Mapping[int | None, Workflow],
) -> dict[int, ShownError]:
    """Return by key why each failed step failed, with a few queries for each level of fan-outs."""
    failed = [row for row in rows if row.status == StepStatus.FAILED]
    firsts = _first_failures([row for row in failed if row.kind == StepKind.MAP])
    found, rest = {}, []
    for row in failed:
        task = firsts.get(row.pk) if row.kind == StepKind.MAP else tasks.get(row.pk)
        child = children.get(row.pk)
        if task is not None and task["task__status"] in UNSUCCESSFUL:
            found[row.pk] = ShownError(
                error_class=task["task__error_class"],
                message=task["task__error_message"],
                task_id=task["task_id"],
            )
        elif child is not None and (error := shown_error(child.error)) is not None:
            found[row.pk] = error
        else:
            rest.append(row.pk)
    if rest:
        fans = _first_failed_fans(rest)
        inner = errors_of(fans, {}, children_by_step(fans))
        found |= {fan.parent_step_id or 0: inner[fan.pk] for fan in fans if fan.pk in inner}
        found |= _first_errors_of_parts([key for key in rest if key not in found])
    return found


def _first_errors_of_parts(step_ids: Sequence[int]) -> dict[int, ShownError]:
    """Return the error of the first failed child of each group whose members are children."""
    children = Workflow.objects.using(database_alias()).filter(
        parent_step_id=OuterRef("pk"), error__isnull=False
    )
    steps = Step.objects.using(database_alias()).filter(pk__in=step_ids, kind=StepKind.MAP)
    first = Subquery(children.order_by("parent_place").values("error")[:1])
    found = {key: shown_error(error) for key, error in steps.values_list("pk", first)}
    return {key: error for key, error in found.items() if error is not None}


def _first_failures(maps: Sequence[Step]) -> dict[int, dict[str, Any]]:
    """Return a failed task of each map: the first member, or for a wide map the first to fail."""
    if not maps:
        return {}
    members = Member.objects.using(database_alias()).filter(
        step_id=OuterRef("pk"), task__status__in=UNSUCCESSFUL
    )
    narrow = [row.pk for row in maps if (row.members or 0) <= NARROW]
    steps = Step.objects.using(database_alias()).filter(pk__in=narrow)
    first = Subquery(members.order_by("place").values("task_id")[:1])
    ids = list(steps.values_list(first, flat=True)) if narrow else []
    for row in maps:
        if (row.members or 0) > NARROW:
            ids += unsuccessful_of(row, most=1)
    found = Task.objects.using(database_alias()).filter(pk__in=list(filter(None, ids)))
    rows = found.values_list("step_id", "id", "status", "error_class", "error_message")
    return {row[0]: dict(zip(OF_TASK, row, strict=True)) for row in rows}


def unsuccessful_of(step: Step, *, most: int) -> list[UUID]:
    """Return the ids of unsuccessful tasks of a step, the earliest first.

    No index finds them among the members of a step. So this reads tasks that ended since the
    release of the step, up to a number of rows of each status.
    """
    tasks = Task.objects.using(database_alias()).filter(finished_at__gte=step.released_at)
    found: list[UUID] = []
    for status in UNSUCCESSFUL:
        ended = tasks.filter(status=status).order_by("finished_at", "id")[:MOST_LOOKED_AT]
        rows = ended.values_list("id", "step_id")
        found += [key for key, step_id in rows if step_id == step.pk][: most - len(found)]
    return found


def _first_failed_fans(parents: Sequence[int]) -> list[Step]:
    """Return the first failed fan-out among those that tasks of each step returned."""
    fans = Step.objects.using(database_alias()).filter(
        parent_step_id=OuterRef("pk"), status=StepStatus.FAILED
    )
    steps = Step.objects.using(database_alias()).filter(pk__in=parents)
    firsts = steps.values_list(Subquery(fans.order_by("parent_place").values("pk")[:1]), flat=True)
    return list(Step.objects.using(database_alias()).filter(pk__in=list(filter(None, firsts))))


def children_by_step(rows: Iterable[Step]) -> dict[int | None, Workflow]:
    ids = [row.pk for row in rows if row.kind == StepKind.WORKFLOW]
    if not ids:
        return {}
    children = Workflow.objects.using(database_alias()).filter(parent_step_id__in=ids)
    # The newest replaces earlier runs.
    return {
        row.parent_step_id: row for row in children.only("parent_step_id", "error").order_by("id")
    }
