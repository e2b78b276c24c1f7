"""The final state of workflows, as plain values, and how it is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

CALLBACK = "tests.chaos.workflow_bodies.ended"

RESOLVED = 77
"""The result that a step is given that is resolved by hand."""


class WorkflowRow(NamedTuple):
    """A workflow as it was in the end."""

    id: str
    name: str
    status: str
    open_steps: int
    parent_step_id: int | None
    was_stopped: bool
    trouble: str
    context: dict[str, object] = {}
    total_steps: int | None = None
    members: int | None = None
    callback: str = ""
    """The key that `ended` is given at its end; empty: it is not called."""
    created_at: float = 0.0
    parent_place: int | None = None
    """Of a group of unlike calls, the member that it is."""
    last: tuple[str, ...] = ()
    """The steps whose results are its own."""


class StepRow(NamedTuple):
    """A step as it was in the end."""

    id: int
    workflow_id: str
    name: str
    kind: str
    status: str
    members: int | None
    ended: int
    failures: int
    on_failure: str
    has_condition: bool
    parent_step_id: int | None = None
    parent_place: int | None = None
    """The member that returned it as a fan-out."""
    compensates_id: int | None = None
    """The step that it undoes."""
    has_compensation: bool = False
    finished_at: float | None = None
    concurrency: int | None = None
    is_unlike: bool = False
    """Whether its members are tasks of any kind, and workflows: a retry anew deletes them."""


class EdgeRow(NamedTuple):
    """A dependency."""

    upstream_id: int
    downstream_id: int
    when: str


class MemberRow(NamedTuple):
    """A task of a step, and its result as it is stored."""

    task_id: str
    step_id: int
    place: int
    status: str
    return_value: object


class NoteRow(NamedTuple):
    """An end that its step has not counted."""

    subject: str
    step_id: int
    status: str


class CallbackRow(NamedTuple):
    """A task that the end of a workflow enqueued."""

    task_id: str
    key: str


class VerbRow(NamedTuple):
    """What somebody did to a workflow, by the host's clock; None: no answer came."""

    workflow_id: str
    name: str
    asked_at: float
    answered_at: float | None


def _discarded() -> tuple[set[UUID], set[int]]:
    """The workflows and steps that a retry has put aside, and that only wait to be pruned.

    They count as deleted: the tasks of a retried fan-out are not those that the workflow has.
    """
    from taskqueue.engine.workflows.discarding import NOWHERE
    from taskqueue.models import Step, Workflow

    workflows: set[UUID] = set()
    steps: set[int] = set()
    found = set(Workflow.objects.filter(parent_step_id=NOWHERE).values_list("id", flat=True))
    while found:
        workflows |= found
        below = set(Step.objects.filter(workflow_id__in=found).values_list("id", flat=True))
        steps |= below
        children = Workflow.objects.filter(parent_step_id__in=below)
        found = set(children.values_list("id", flat=True)) - workflows
    return workflows, steps


def read_workflows() -> Iterator[WorkflowRow]:
    """Read all workflows."""
    from taskqueue.models import Workflow

    discarded, _ = _discarded()
    for row in Workflow.objects.exclude(id__in=discarded).order_by("id"):
        yield WorkflowRow(
            str(row.id), row.name, row.status, row.open_steps, row.parent_step_id,
            row.stop_requested_at is not None, row.trouble, row.context, row.total_steps,
            row.members, next((_key(call["args"]) for _, call in row.callbacks), ""),
            row.created_at.timestamp(), row.parent_place, tuple(row.last),
        )  # fmt: skip


def _key(args: str) -> str:
    """The key among the stored arguments of a callback."""
    return str(json.loads(args)[1])


def read_steps() -> Iterator[StepRow]:
    """Read all steps."""
    from taskqueue.models import Step

    _, discarded = _discarded()
    for row in Step.objects.exclude(id__in=discarded).order_by("id"):
        yield StepRow(
            row.id, str(row.workflow_id), row.name, row.kind, row.status, row.members, row.ended,
            row.failures, row.on_failure, row.when is not None, row.parent_step_id,
            row.parent_place, row.compensates_id, row.compensate is not None,
            row.finished_at and row.finished_at.timestamp(), row.concurrency,
            "specs" in row.request,
        )  # fmt: skip


def read_edges() -> Iterator[EdgeRow]:
    """Read all dependencies."""
    from taskqueue.models import Dependency

    _, discarded = _discarded()
    rows = Dependency.objects.exclude(downstream_id__in=discarded)
    return (EdgeRow(*row) for row in rows.values_list("upstream_id", "downstream_id", "when"))


def read_members() -> Iterator[MemberRow]:
    """Read the tasks of steps, by what they say themselves."""
    from taskqueue.models import Task

    _, discarded = _discarded()
    rows = Task.objects.filter(step_id__isnull=False).exclude(step_id__in=discarded).order_by("id")
    fields = ("id", "step_id", "place", "status", "return_value")
    return (MemberRow(str(id), *others) for id, *others in rows.values_list(*fields))


def read_notes() -> Iterator[NoteRow]:
    """Read the ends that were not counted."""
    from taskqueue.models import StepEnd

    rows = StepEnd.objects.values_list("subject", "step_id", "status")
    return (NoteRow(str(subject), *others) for subject, *others in rows)


def read_callbacks() -> Iterator[CallbackRow]:
    """Read the tasks that ends of workflows enqueued, with the keys that they are given."""
    from taskqueue.models import Task

    rows = Task.objects.filter(name=CALLBACK, step_id__isnull=True).order_by("id")
    return (CallbackRow(str(id), args[1]) for id, args in rows.values_list("id", "args"))


def read_repairs() -> int:
    """Read how many steps were repaired."""
    from django.db.models import Sum

    from taskqueue.models import WorkflowCount

    repaired = WorkflowCount.objects.filter(what="repaired")
    return int(repaired.aggregate(total=Sum("number"))["total"] or 0)
