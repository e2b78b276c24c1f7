"""Workflows: in lists, with the number of ended members, and in detail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Count, Q, Sum

from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.core.workflow_states import FINAL_WORKFLOWS, StepStatus, WorkflowStatus
from taskqueue.engine.connections import database_alias
from taskqueue.engine.workflows.results import Results
from taskqueue.engine.workflows.workflow_verbs import WORKFLOW_VERBS
from taskqueue.exceptions import InvalidWorkflow
from taskqueue.models import Audit, Schedule, Step, Workflow
from taskqueue.monitoring.read_models.audit import ShownAuditEntry
from taskqueue.monitoring.read_models.base import (
    Viewer,
    about,
    from_row,
    from_rows,
    visible_call,
    visible_context,
)
from taskqueue.monitoring.read_models.step import (
    STEP_STATUSES,
    ShownStep,
    shown_steps,
    steps_of,
)
from taskqueue.monitoring.read_models.step_errors import ShownError, shown_error

STATUSES = [status.value for status in WorkflowStatus]
MOST_CHILDREN, MOST_STEPS, MOST_ENTRIES = 100, 1000, 100
# The result of a workflow with more members is not read for a page.
MOST_RETURNED = 200
# Their members count as ended without success.
NEVER_RAN = [StepStatus.SKIPPED.value, StepStatus.CANCELLED.value]
HIDDEN = "hidden: no workflow of this name is known here"


@dataclass(frozen=True, kw_only=True)
class ListedWorkflow:
    """A workflow in a list, with how many of its members have ended."""

    id: UUID
    name: str
    version: str = about("What the project says of its own changes.")
    status: str = about(choices=STATUSES)
    is_finished: bool
    total_steps: int
    open_steps: int = about("Steps that have not ended.")
    members: int = about("Tasks and child workflows that its steps are known to run.")
    ended: int = about("Those of them that have ended.")
    failures: int = about("Those of them that ended without success, but not of skipped steps.")
    failed: int = about("Those of them that ran and did not succeed.", in_json=False)
    dropped: int = about("Those of them that never ran: skipped or cancelled.", in_json=False)
    unique_key: str | None
    parent: UUID | None = about("The workflow that runs it as a step.")
    parent_step: str = about("The name of that step.")
    parent_place: int | None = about("Which member of that step it is, where it has several.")
    schedule: str | None = about("The name of the schedule that enqueued it.")
    nominal_at: datetime | None = about("The time of the schedule that it stands for.")
    paused_at: datetime | None
    deadline_at: datetime | None
    stop_requested_at: datetime | None
    failed_step: str = about("The step that failed first.")
    error: ShownError | None
    trouble: str = about("Why it could not be moved on, or a callback could not be enqueued.")
    created_at: datetime
    moved_at: datetime = about("When a step was last released or ended.")
    finished_at: datetime | None

    @property
    def percent(self) -> int:
        """The share of known members that have ended; 100 only once the workflow has ended."""
        if self.is_finished:
            return 100
        return min(99, 100 * self.ended // self.members) if self.members else 0


@dataclass(frozen=True, kw_only=True)
class ChildWorkflow:
    """A workflow that a step of another one runs."""

    id: UUID
    step: str
    place: int | None = about("Which member of that step it is, where it has several.")
    name: str
    status: str = about(choices=STATUSES)


@dataclass(frozen=True, kw_only=True)
class ShownWorkflow(ListedWorkflow):
    """A workflow with its arguments, its context and the verbs that it allows."""

    args: list[Any] | None = about(
        "Without sensitive values; null: you lack the permission to see arguments. A reference"
        ' such as `{"$step": "load"}` stands for the result of a step of the parent.',
        empty=HIDDEN,
    )
    kwargs: dict[str, Any] | None = about(empty=HIDDEN)
    context: dict[str, Any] | None = about(
        "The values that its steps have set, without sensitive ones; null: as for arguments.",
        empty=HIDDEN,
    )
    step_counts: dict[str, int] = about("The number of steps in each status.")
    children: list[ChildWorkflow] = about(f"The first {MOST_CHILDREN}.")
    return_value: Any = about(
        "Of its last step, or an object by name where there are several; null unless it has"
        f" succeeded, if it has more than {MOST_RETURNED} members, and if you lack the permission"
        " to see tasks."
    )
    fail_fast: bool
    stop_requested_by: str
    stop_reason: str
    retention: timedelta | None = about("Seconds.")
    prune_after: datetime | None = about("It is deleted with all its tasks then.")
    can: list[str] = about("Verbs that you may use on it now.", choices=list(WORKFLOW_VERBS))


@dataclass(frozen=True, kw_only=True)
class WorkflowHistory(ShownWorkflow):
    """A workflow with its steps and with what people did to it."""

    steps: list[ShownStep] = about(f"The first {MOST_STEPS}.")
    audit: list[ShownAuditEntry] = about("Oldest first.")


W = TypeVar("W", bound=ListedWorkflow)
S = TypeVar("S", bound=ShownWorkflow)


def shown_workflows(rows: Sequence[Workflow]) -> list[ListedWorkflow]:
    """Make the read models of rows, by three queries."""
    around = _Around.of(rows)
    return [_shown(ListedWorkflow, row, around) for row in rows]


def shown_workflow(row: Workflow, viewer: Viewer) -> ShownWorkflow:
    """Return the workflow with its details, by a few queries."""
    return _whole(ShownWorkflow, row, viewer)


def workflow_history(row: Workflow, viewer: Viewer) -> WorkflowHistory:
    """Return the workflow with its first steps and the first audit entries."""
    entries = Audit.objects.using(database_alias()).filter(noun="workflow", subject=str(row.id))
    return _whole(
        WorkflowHistory,
        row,
        viewer,
        steps=shown_steps(list(steps_of(row.id)[:MOST_STEPS]), viewer),
        audit=from_rows(ShownAuditEntry, entries.order_by("id")[:MOST_ENTRIES]),
    )


def _whole(model: type[S], row: Workflow, viewer: Viewer, **values: Any) -> S:
    call = visible_call(row.name, row.args, row.kwargs, viewer)
    args, kwargs = (None, None) if call is None else call
    counts = Counter(dict(_statuses(row)))
    return _shown(
        model,
        row,
        _Around.of([row]),
        args=args,
        kwargs=kwargs,
        context=visible_context(row.name, row.context, viewer),
        step_counts={status: counts[status] for status in STEP_STATUSES},
        children=children_of(row.id),
        return_value=_return_value(row, viewer),
        can=[verb.name for verb in WORKFLOW_VERBS.values() if verb.is_for_workflow(viewer, row)],
        **values,
    )


def children_of(workflow_id: UUID) -> list[ChildWorkflow]:
    """Return the first workflows that its steps run, in the order in which they began."""
    steps = Step.objects.using(database_alias()).filter(workflow_id=workflow_id)
    names = dict(steps.filter(kind__in=["workflow", "map"]).values_list("id", "name"))
    children = Workflow.objects.using(database_alias()).filter(parent_step_id__in=list(names))
    read = children.only("name", "status", "parent_step_id", "parent_place")
    return [
        from_row(ChildWorkflow, row, step=names[row.parent_step_id or 0], place=row.parent_place)
        for row in read.order_by("id")[:MOST_CHILDREN]
    ]


@dataclass(frozen=True)
class _Around:
    """Facts about workflows from other tables."""

    # Sums over the steps, by workflow.
    counts: Mapping[UUID, Mapping[str, Any]]
    # The parent and its step's name, by step.
    parents: Mapping[int, tuple[UUID, str]]
    schedules: Mapping[int, str]

    @classmethod
    def of(cls, rows: Iterable[Workflow]) -> _Around:
        """Read the facts for these workflows."""
        found = list(rows)
        steps = Step.objects.using(database_alias())
        sums = steps.filter(workflow_id__in=[row.id for row in found], members__isnull=False)
        counts = (
            sums.values("workflow_id")
            .order_by("workflow_id")
            .annotate(
                all_members=Sum("members"),
                all_ended=Sum("ended"),
                all_failures=Sum("failures", filter=~Q(status=StepStatus.SKIPPED), default=0),
                all_failed=Sum("failures", filter=~Q(status__in=NEVER_RAN), default=0),
                all_dropped=Sum("failures", filter=Q(status__in=NEVER_RAN), default=0),
            )
        )
        parents = steps.filter(
            id__in=[row.parent_step_id for row in found if row.parent_step_id is not None]
        )
        schedules = Schedule.objects.using(database_alias()).filter(
            id__in=[row.schedule_id for row in found if row.schedule_id is not None]
        )
        return cls(
            {each["workflow_id"]: each for each in counts},
            {id: (parent, name) for id, parent, name in parents.values_list(
                "id", "workflow_id", "name"
            )},
            dict(schedules.values_list("id", "name")),
        )  # fmt: skip


def _shown(model: type[W], row: Workflow, around: _Around, **values: Any) -> W:
    counts = around.counts.get(row.id, {})
    parent, parent_step = around.parents.get(row.parent_step_id or 0, (None, ""))
    return from_row(
        model,
        row,
        is_finished=row.status in FINAL_WORKFLOWS,
        members=counts.get("all_members", 0),
        ended=counts.get("all_ended", 0),
        failures=counts.get("all_failures", 0),
        failed=counts.get("all_failed", 0),
        dropped=counts.get("all_dropped", 0),
        parent=parent,
        parent_step=parent_step,
        schedule=around.schedules.get(row.schedule_id or 0),
        error=shown_error(row.error),
        **values,
    )


def _statuses(row: Workflow) -> Any:
    steps = Step.objects.using(database_alias()).filter(workflow_id=row.id)
    return steps.values_list("status").order_by("status").annotate(number=Count("id"))


def _return_value(row: Workflow, viewer: Viewer) -> Any:
    is_told = row.status == WorkflowStatus.SUCCEEDED and row.members <= MOST_RETURNED
    if not is_told or not viewer.has_perm(VIEW_TASKS):
        return None
    try:
        return Results(database_alias(), row.id).return_value()
    except InvalidWorkflow:  # A part of a result is missing.
        return None
