"""The verbs by which people change workflows. Each locks the workflow first, and is audited."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Q
from django.db.transaction import atomic, on_commit

from taskqueue.conf import get_settings
from taskqueue.core.refusals import refusal as _
from taskqueue.core.workflow_states import FINAL_WORKFLOWS, StepStatus, WorkflowStatus
from taskqueue.declarations.payload import encode
from taskqueue.declarations.workflows.graph import FORMAT
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.locking import Seen, require_seen
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import ANYWHERE
from taskqueue.engine.sessions import take_write_lock
from taskqueue.engine.workflows.advancing import Advance
from taskqueue.engine.workflows.pending import count_pending
from taskqueue.engine.workflows.reopening import FAILED_TASKS
from taskqueue.engine.workflows.retrying import Retry
from taskqueue.engine.workflows.serving import stop_missed
from taskqueue.engine.workflows.stopping import request_stop
from taskqueue.exceptions import TransitionRefused, WorkflowDoesNotExist
from taskqueue.models import Step, Task, Workflow

NOUN = "workflow"
RUNNING = frozenset({WorkflowStatus.RUNNING})
RETRIABLE = RUNNING | {WorkflowStatus.FAILED, WorkflowStatus.CANCELLED}
ENDED_OR_RUNNING = RUNNING | FINAL_WORKFLOWS


def cancel(
    connection: BaseDatabaseWrapper, workflow_id: UUID, *, by: object, reason: object
) -> None:
    """Stop a workflow: release no more steps, and request the stop of running tasks.

    This transaction stops as much as a worker does in one; workers do the rest. Tasks that other
    sessions had locked are stopped right after the COMMIT.
    """
    with _locked(connection, workflow_id, "cancel", by=by, reason=reason) as (workflow, now):
        who = person(by, reason)
        request_stop(connection, workflow, now=now, reason=who.reason, by=who.by)
        turn = Advance(connection, [workflow], now=now)
        turn.run()
        dialect_for(connection).wake_sleeping(connection, ANYWHERE)
        if turn.has_missed:  # Such as tasks whose attempts are being recorded.
            again = partial(stop_missed, connection, workflow_id)
            on_commit(again, using=connection.alias, robust=True)


def pause(
    connection: BaseDatabaseWrapper, workflow_id: UUID, *, by: object, reason: object
) -> None:
    """Release nothing more of it, or of its children, until it is resumed.

    Pausing again replaces time, person and reason.
    """
    with _locked(connection, workflow_id, "pause", by=by, reason=reason) as (workflow, now):
        before, workflow.paused_at = workflow.paused_at, now
        workflow.save(using=connection.alias, update_fields=["paused_at"])
        # Children that were paused by themselves keep their own time, by which they stay paused.
        paused_so = Q(paused_at=None) | Q(paused_at=before)
        for generation in _generations_below(connection, workflow):
            rows = Workflow.objects.using(connection.alias).filter(id__in=generation)
            rows.filter(paused_so).update(paused_at=now)


def resume(
    connection: BaseDatabaseWrapper, workflow_id: UUID, *, by: object, reason: object
) -> None:
    """Release what the pause has kept back. Raises `TransitionRefused` if it is not paused."""
    with _locked(connection, workflow_id, "resume", by=by, reason=reason) as (workflow, now):
        if workflow.paused_at is None:
            raise TransitionRefused(_("Workflow {workflow} is not paused.", workflow=workflow.id))
        # Those that were paused by themselves stay so.
        ids = [id for some in _generations_below(connection, workflow) for id in some]
        below = Workflow.objects.using(connection.alias).filter(id__in=ids)
        resumed = [workflow, *below.filter(paused_at=workflow.paused_at).order_by("id")]
        for each in resumed:
            each.paused_at = None
        ids = [each.id for each in resumed]
        Workflow.objects.using(connection.alias).filter(id__in=ids).update(paused_at=None)
        rows = Step.objects.using(connection.alias).filter(workflow_id__in=ids)
        unsent = rows.filter(status=StepStatus.RUNNING, released__lt=F("members") + F("held"))
        unsent.update(is_due=True)
        Advance(connection, resumed, now=now).begin()


def _generations_below(connection: BaseDatabaseWrapper, workflow: Workflow) -> Iterator[list[UUID]]:
    """Lock and yield the unfinished children of a locked workflow, then their children, and so on.

    Each generation is locked before the next is looked for: a child that another session has locked
    may be about to begin a child of its own.
    """
    rows = Workflow.objects.using(connection.alias).exclude(status__in=sorted(FINAL_WORKFLOWS))
    generation = [workflow.id]
    while generation:
        steps = Step.objects.using(connection.alias).filter(workflow_id__in=generation)
        children = rows.filter(parent_step_id__in=steps.values("id")).order_by("id")
        locked = children.select_for_update().values_list("id", flat=True)
        if generation := list(locked):
            yield generation


def retry(
    connection: BaseDatabaseWrapper,
    workflow_id: UUID,
    *,
    by: object,
    reason: object,
    from_step: str | None = None,
) -> None:
    """Run failed and cancelled steps again in place, and the steps that they kept from running.

    With `from_step`, that step and all steps behind it also run anew, however they ended. Callbacks
    are called again at the next end. A deadline that has passed counts from now.

    Raises `TransitionRefused` if there is nothing to retry, if a step that must run anew is
    running, or if another workflow holds the unique key; `WorkflowDoesNotExist` for an unknown
    step.
    """
    statuses = ENDED_OR_RUNNING if from_step else RETRIABLE
    detail = f"from step {from_step}" if from_step else ""
    with _reopened(
        connection, workflow_id, "retry", by=by, reason=reason, statuses=statuses, detail=detail
    ) as again:
        anew = set()
        if from_step:
            step = again.step(from_step)
            anew = {step.id, *again.behind(step.id)}
        again.retry(anew)


def retry_task(
    connection: BaseDatabaseWrapper, task: Task, *, by: object, reason: object, seen: Seen = None
) -> None:
    """Retry a failed task of a step together with its step; alone if the step is still running.

    Raises `TransitionRefused` if the task has not failed, if its step has succeeded without it or
    fails because of others, and as `retry` does.
    """
    steps = Step.objects.using(connection.alias).filter(id=task.step_id or 0)
    workflow_id = steps.values_list("workflow_id", flat=True).get()
    with _reopened(
        connection, workflow_id, "retry", by=by, reason=reason, statuses=ENDED_OR_RUNNING,
        detail=f"task {task.id}",
    ) as again:  # fmt: skip
        task.refresh_from_db(using=connection.alias)
        require_seen(task, seen, _("Task {task}", task=task.id))
        if task.status not in FAILED_TASKS:
            raise TransitionRefused(_(
                "Task {task} has not failed: it is {status}.", task=task.id, status=task.status
            ))  # fmt: skip
        again.retry_task(task)
        act = Act(str(task.id), before=task.status, detail=f"with workflow {workflow_id}")
        audit(connection, "task", "retry", [act], person=person(by, reason))


def resolve(
    connection: BaseDatabaseWrapper,
    workflow_id: UUID,
    *,
    step: str,
    value: object,
    by: object,
    reason: object,
) -> None:
    """Count a failed step as succeeded with this result.

    The steps that it had cancelled wait again. Raises `TransitionRefused` if the step has not
    failed, `WorkflowDoesNotExist` for an unknown step, and `InvalidArguments` if the value is not
    JSON or is too large.
    """
    text = encode(value, limit=get_settings().MAX_RESULT, what="value")
    with _reopened(
        connection, workflow_id, "resolve", by=by, reason=reason, detail=f"step {step}"
    ) as again:
        again.resolve(again.step(step), json.loads(text))


@contextmanager
def _reopened(
    connection: BaseDatabaseWrapper,
    workflow_id: UUID,
    verb: str,
    *,
    by: object,
    reason: object,
    detail: str,
    statuses: Collection[WorkflowStatus] = RETRIABLE,
) -> Iterator[Retry]:
    """Lock a workflow and yield a `Retry` that reopens its steps. Raises `TransitionRefused`."""
    known = frozenset(WorkflowStatus)
    with _locked(
        connection, workflow_id, verb, by=by, reason=reason, statuses=known, detail=detail
    ) as (workflow, now):
        count_pending(connection, workflow, now=now)
        _require_status(workflow, statuses)
        if workflow.status in FINAL_WORKFLOWS:
            _require_kept(connection, workflow, now=now)
        again = Retry(connection, workflow, now=now)
        try:
            with atomic(using=connection.alias):
                yield again
        except IntegrityError as error:
            raise TransitionRefused(_("Another workflow holds its unique key by now.")) from error
        again.begin()
        dialect_for(connection).wake_sleeping(connection, ANYWHERE)


def _require_kept(connection: BaseDatabaseWrapper, workflow: Workflow, *, now: datetime) -> None:
    """Refuse an ended workflow that is a child or is being deleted."""
    steps = Step.objects.using(connection.alias).filter(id=workflow.parent_step_id or 0)
    if parent := steps.values_list("workflow_id", flat=True).first():
        raise TransitionRefused(_(
            "Workflow {workflow} has ended as a step of workflow {parent}. Retry that one.",
            workflow=workflow.id, parent=parent,
        ))  # fmt: skip
    if workflow.prune_after is not None and workflow.prune_after <= now:
        raise TransitionRefused(_(
            "The retention of workflow {workflow} is over, and it is about to be deleted.",
            workflow=workflow.id,
        ))  # fmt: skip


def _require_status(workflow: Workflow, statuses: Collection[WorkflowStatus]) -> None:
    if workflow.status not in statuses:
        raise TransitionRefused(_(
            "Workflow {workflow} is {status}.", workflow=workflow.id, status=workflow.status
        ))  # fmt: skip


@contextmanager
def _locked(
    connection: BaseDatabaseWrapper,
    workflow_id: UUID,
    verb: str,
    *,
    by: object,
    reason: object,
    statuses: Collection[WorkflowStatus] = RUNNING,
    detail: str = "",
) -> Iterator[tuple[Workflow, datetime]]:
    """Lock a workflow for a verb, and write the audit entry.

    Raises `WorkflowDoesNotExist`, and `TransitionRefused` if its status does not allow the verb.
    """
    with atomic(using=connection.alias):
        take_write_lock(connection)
        rows = Workflow.objects.using(connection.alias).filter(id=workflow_id)
        workflow = rows.select_for_update().first()
        if workflow is None:
            raise WorkflowDoesNotExist(_(
                "There is no workflow {workflow_id}.", workflow_id=workflow_id
            ))  # fmt: skip
        if workflow.format > FORMAT:
            raise TransitionRefused(_(
                "Workflow {workflow} was stored by a newer version of taskqueue, in format "
                "{format}, and this one knows {known}. Use the newer version.",
                workflow=workflow.id, format=workflow.format, known=FORMAT,
            ))  # fmt: skip
        _require_status(workflow, statuses)
        act = Act(str(workflow.id), workflow.status, detail)
        yield workflow, dialect_for(connection).now(connection)
        audit(connection, NOUN, verb, [act], person=person(by, reason))
