"""Why a workflow does not advance, and what a blocked task of one of its steps waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import BooleanField, F
from django.db.models.expressions import RawSQL

from taskqueue.core.workflow_states import (
    FINAL_STEPS,
    FINAL_WORKFLOWS,
    StepStatus,
    WorkflowStatus,
)
from taskqueue.engine.connections import database_alias
from taskqueue.engine.workflows.stopping import HAVE_CHILDREN
from taskqueue.engine.workflows.verbs import NOUN
from taskqueue.models import Audit, Lease, Member, Step, StepEnd, Task, Workflow
from taskqueue.monitoring.read_models.attempt import IS_RUNNING
from taskqueue.monitoring.read_models.step_errors import NARROW
from taskqueue.monitoring.read_models.worker import living, read_workers
from taskqueue.monitoring.reading import now
from taskqueue.monitoring.why.reasons import Reason, because, listed

# The most steps that are reported one by one.
MOST_STEPS = 20
MOST_WORKERS = 1_000
# The limit for counting notes and searching for a task.
CAP = 10_000
# Conditions of partial indexes, written literally because SQLite would not use them otherwise.
IS_WAITING = "taskqueue_task.status IN ('retrying', 'scheduled')"
IS_READY = "taskqueue_task.status = 'ready' AND taskqueue_task.route = 0"
IS_LIMITED = "taskqueue_task.status = 'ready' AND taskqueue_task.route = 2"


def why_workflow(workflow: Workflow) -> list[Reason]:
    """Return what the workflow waits for, or how it ended: at least one reason.

    It makes a few queries by indexes; the given row is used as it is.
    """
    if workflow.status in FINAL_WORKFLOWS:
        return [_ended(workflow)]
    running = _running(workflow)
    reasons = [*_held_back(workflow), *_overdue(workflow)]
    for step in running[:MOST_STEPS]:
        reasons += [*_of_step(step), *_limited(step)]
    return [*reasons, *_of_workers(workflow, is_idle=not reasons)]


def why_blocked(task: Task) -> list[Reason]:
    """Return what keeps an unreleased task of a step waiting: at least one reason."""
    steps = Step.objects.using(database_alias()).select_related("workflow")
    step = steps.filter(id=task.step_id).first() if task.step_id is not None else None
    if step is None:
        return [because("blocked")]
    workflow = step.workflow
    reasons = list(_held_back(workflow))
    upstream = Step.objects.using(database_alias()).filter(dependants__downstream=step)
    awaited = list(upstream.exclude(status__in=sorted(FINAL_STEPS)).order_by("id"))
    if awaited:
        reasons.append(because("steps_wait", listed([each.name for each in awaited])))
    running = [each for each in awaited if each.status == StepStatus.RUNNING]
    for oldest in sorted(running or _running(workflow), key=_released)[:1]:
        reasons += [*_of_step(oldest), *_limited(oldest)]
    return [*reasons, *_of_workers(workflow, is_idle=not reasons)]


def _ended(workflow: Workflow) -> Reason:
    if workflow.status == WorkflowStatus.FAILED:
        error = workflow.error or {}
        return because(
            "workflow_failed", workflow.failed_step, workflow.finished_at,
            error=error.get("error_class"), message=error.get("message"),
        )  # fmt: skip
    if workflow.status == WorkflowStatus.CANCELLED:
        who, why = workflow.stop_requested_by, workflow.stop_reason
        return because("cancelled", who, workflow.finished_at, reason=why)
    return because("workflow_succeeded", moment=workflow.finished_at)


def _held_back(workflow: Workflow) -> Iterator[Reason]:
    """Yield what keeps it from releasing steps."""
    if workflow.trouble:
        yield because("workflow_trouble", trouble=workflow.trouble)
    if workflow.paused_at is not None:
        yield because("workflow_paused", moment=workflow.paused_at, **_pause_of(workflow))
    if workflow.status == WorkflowStatus.STOPPING:
        yield because(
            "workflow_stopping", workflow.stop_requested_by, workflow.stop_requested_at,
            reason=workflow.stop_reason,
        )  # fmt: skip
    if workflow.status == WorkflowStatus.COMPENSATING:
        yield because("workflow_compensating")


def _pause_of(workflow: Workflow) -> dict[str, str]:
    """Return who paused it, and why. A child that was paused with its parent has its moment."""
    rows = Workflow.objects.using(database_alias()).filter(paused_at=workflow.paused_at)
    paused, parent = workflow, rows.filter(steps=workflow.parent_step_id or 0).first()
    while parent is not None:
        paused, parent = parent, rows.filter(steps=parent.parent_step_id or 0).first()
    audit = Audit.objects.using(database_alias())
    entry = audit.filter(noun=NOUN, verb="pause", subject=str(paused.id)).order_by("-id").first()
    return {} if entry is None else {"by": entry.actor, "reason": entry.reason}


def _overdue(workflow: Workflow) -> Iterator[Reason]:
    if workflow.deadline_at is not None and workflow.deadline_at <= now():
        yield because("workflow_overdue", moment=workflow.deadline_at)


def _running(workflow: Workflow) -> list[Step]:
    """Return the first of its running steps, those that were released first."""
    steps = Step.objects.using(database_alias()).filter(workflow=workflow.id)
    running = steps.filter(status=StepStatus.RUNNING)
    return list(running.order_by(F("released_at").asc(nulls_last=True), "id")[: MOST_STEPS + 1])


def _released(step: Step) -> tuple[bool, Any, int]:
    return step.released_at is None, step.released_at, step.id


def _of_step(step: Step) -> Iterator[Reason]:
    """Yield what a running step waits for: its oldest unfinished child and task."""
    if step.kind in HAVE_CHILDREN:
        children = Workflow.objects.using(database_alias()).filter(parent_step_id=step.id)
        child = children.exclude(status__in=sorted(FINAL_WORKFLOWS)).order_by("id").first()
        if child is not None:
            yield because("child_runs", step.name, workflow=str(child.id), status=child.status)
    oldest = _oldest_unfinished(step)
    if oldest is not None:
        task_id, status, parked_at = oldest
        if parked_at is not None:
            yield because("member_parked", step.name, parked_at, task=str(task_id))
        yield because(
            "member_runs", step.name, task=str(task_id), status=status, ended=step.ended,
            members=step.members,
        )  # fmt: skip


def _oldest_unfinished(step: Step) -> tuple[Any, str, Any] | None:
    """Return the id, the status and `parked_at` of the first unfinished task of a step.

    No index finds it among the members. For a wide step this reads running, scheduled and ready
    tasks of the whole project, up to a number of each, and prefers a running one.
    """
    shown = ("id", "status", "parked_at")
    tasks = Task.objects.using(database_alias())
    if (step.members or 0) <= NARROW:
        members = Member.objects.using(database_alias()).filter(step=step, place__gte=0)
        unfinished = members.filter(task__finished_at=None).order_by("place")
        return unfinished.values_list(*(f"task__{name}" for name in shown)).first()
    leases = Lease.objects.using(database_alias()).filter(_literal(IS_RUNNING))
    running = list(leases.order_by().values_list("task_id", flat=True)[:CAP])
    found = tasks.filter(id__in=running, step_id=step.id).order_by("place")
    one: tuple[Any, str, Any] | None = found.values_list(*shown).first()
    if one is not None:
        return one
    waiting = tasks.filter(_literal(IS_WAITING)).order_by("run_after")
    ready = tasks.filter(_literal(IS_READY))
    in_line = ready.order_by("queue_name", "-priority", "run_after", "id")
    limited = tasks.filter(_literal(IS_LIMITED))
    under_limits = limited.order_by("partition", "-priority", "run_after", "id")
    for candidates in (waiting, in_line, under_limits):
        rows = candidates.values_list("step_id", *shown)[:CAP]
        if (row := next((row for row in rows if row[0] == step.id), None)) is not None:
            return row[1], row[2], row[3]
    return None


def _literal(condition: str) -> RawSQL:
    return RawSQL(condition, (), output_field=BooleanField())  # noqa: S611  (constants)


def _limited(step: Step) -> Iterator[Reason]:
    unsent = (step.members or 0) - step.released
    if step.concurrency is not None and unsent > 0:
        yield because("step_limited", step.name, most=step.concurrency, unsent=unsent)


def _of_workers(workflow: Workflow, *, is_idle: bool) -> Iterator[Reason]:
    """Yield what workers still have to do: count ends, or advance it."""
    notes = StepEnd.objects.using(database_alias()).filter(workflow=workflow.id)
    waiting = sum(notes.values_list("number", flat=True)[:CAP])
    if waiting:
        yield because("ends_waiting", number=waiting)
    if waiting or is_idle:
        alive = living(read_workers(limit=MOST_WORKERS))
        if not alive:
            yield because("no_workers")
        elif not waiting:
            yield because("advancing")
