"""Steps of workflows, and the tasks that are their members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet, TextField, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce

from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.core.states import TaskStatus
from taskqueue.core.workflow_states import After, OnFailure, StepKind, StepStatus
from taskqueue.engine.connections import database_alias
from taskqueue.models import Dependency, Member, Step
from taskqueue.monitoring.read_models.base import Viewer, about, from_row
from taskqueue.monitoring.read_models.step_errors import (
    OF_TASK,
    ShownError,
    children_by_step,
    errors_of,
)

STEP_STATUSES = [status.value for status in StepStatus]
TASK_STATUSES = [status.value for status in TaskStatus]


@dataclass(frozen=True, kw_only=True)
class ShownDependency:
    """A step that another one follows."""

    step: str
    when: str = about("The end after which it runs.", choices=[end.value for end in After])


@dataclass(frozen=True, kw_only=True)
class ShownStep:
    """A step of a workflow, with how many of its members have ended."""

    name: str
    kind: str = about(
        "`map`: many tasks of one type, or unlike calls with limits; `workflow`: a workflow of its "
        "own; `join`: no task.",
        choices=[kind.value for kind in StepKind],
    )
    calls: str = about("The task type or workflow that it runs; empty: none.")
    status: str = about(choices=STEP_STATUSES)
    after: list[ShownDependency] = about("The steps that it follows.")
    waits: int = about("Those of them that have not ended.")
    members: int | None = about("Tasks or workflows that it runs; null: not known yet.")
    released: int = about("Those of them that were sent.")
    ended: int
    failures: int = about("Those that ended without success.")
    concurrency: int | None = about("How many are sent at once; null: all.")
    tolerate: float = about("How many may fail; below 1: that share.")
    on_failure: str = about(choices=[each.value for each in OnFailure])
    reason: str = about("Why it was skipped or cancelled, or failed without a task that says so.")
    error: ShownError | None = about("Of its first member that failed.")
    released_at: datetime | None
    finished_at: datetime | None
    task_id: UUID | None = about(
        "Its task, if it runs a single one; null also if you lack the permission to see tasks."
    )
    task_status: str = about(choices=["", *TASK_STATUSES])
    workflow_id: UUID | None = about("The workflow that it runs.")


@dataclass(frozen=True, kw_only=True)
class ShownMember:
    """A task of a step."""

    place: int = about("Of its result in that of the step.")
    task_id: UUID
    status: str = about(choices=TASK_STATUSES)
    attempts: int
    started_at: datetime | None
    finished_at: datetime | None
    error_class: str
    error_message: str


def steps_of(workflow_id: UUID) -> QuerySet[Step]:
    """Return the rows of its steps with `calls`, in the order in which they were built.

    Their stored calls, which may be large, are left out.
    """
    rows = Step.objects.using(database_alias()).filter(workflow_id=workflow_id)
    named = rows.annotate(
        calls=Coalesce(KeyTextTransform("name", "request"), Value(""), output_field=TextField())
    )
    return named.defer("request", "when", "inputs", "compensate").order_by("id")


def shown_steps(rows: Sequence[Step], viewer: Viewer) -> list[ShownStep]:
    """Make the read models of rows of `steps_of`, by a few queries."""
    tasks = _single_tasks(rows)
    children = children_by_step(rows)
    needs = _needs(rows)
    errors = errors_of(rows, tasks, children)
    sees_tasks = viewer.has_perm(VIEW_TASKS)
    shown = []
    for row in rows:
        task = tasks.get(row.pk)
        child = children.get(row.pk)
        shown.append(
            from_row(
                ShownStep,
                row,
                after=needs.get(row.pk, []),
                failures=row.shown_failures,
                error=errors.get(row.pk),
                task_id=task["task_id"] if task and sees_tasks else None,
                task_status=task["task__status"] if task and sees_tasks else "",
                workflow_id=None if child is None else child.id,
            )
        )
    return shown


def members_of(step: Step) -> QuerySet[Member]:
    """Return the rows of the members of a step, by their places."""
    members = Member.objects.using(database_alias()).filter(step_id=step.pk, place__gte=0)
    return members.select_related("task").order_by("place")


def shown_members(rows: Iterable[Member]) -> list[ShownMember]:
    """Make the read models of members, without a query."""
    return [
        from_row(
            ShownMember,
            row.task,
            place=row.place,
            task_id=row.task_id,
            attempts=row.task.attempt,
        )
        for row in rows
    ]


def _single_tasks(rows: Iterable[Step]) -> dict[int, dict[str, Any]]:
    ids = [row.pk for row in rows if row.kind == StepKind.TASK]
    return {member["step_id"]: member for member in _tasks(ids)}


def _tasks(step_ids: Iterable[int]) -> Any:
    members = Member.objects.using(database_alias()).filter(step_id__in=list(step_ids))
    return members.filter(place__gte=0).values(*OF_TASK)


def _needs(rows: Iterable[Step]) -> dict[int, list[ShownDependency]]:
    needs: dict[int, list[ShownDependency]] = {}
    edges = Dependency.objects.using(database_alias()).filter(
        downstream_id__in=[row.pk for row in rows]
    )
    named = edges.order_by("downstream_id", "upstream_id", "when")
    for step_id, name, when in named.values_list("downstream_id", "upstream__name", "when"):
        needs.setdefault(step_id, []).append(ShownDependency(step=name, when=when))
    return needs
