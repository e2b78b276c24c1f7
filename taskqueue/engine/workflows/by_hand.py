"""Verbs on one workflow by its id, for all interfaces, guarded by the version seen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.refusals import refusal as _
from taskqueue.core.states import LeaseStatus
from taskqueue.core.workflow_states import FINAL_WORKFLOWS
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.locking import Seen, require_seen
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.sessions import take_write_lock
from taskqueue.engine.workflows import verbs
from taskqueue.engine.workflows.pruning import delete_some, family_of
from taskqueue.exceptions import TransitionRefused, WorkflowDoesNotExist
from taskqueue.models import Lease, Member, Step, Workflow


def cancel_workflow(
    key: UUID | str,
    *,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
    may_stop: bool = True,
) -> None:
    """Cancel a workflow: no step is released, waiting tasks are cancelled, running ones must stop.

    Raises `WorkflowDoesNotExist`. Raises `TransitionRefused` if the workflow has ended, or if it
    has running tasks and the caller may not stop tasks.
    """
    with _locked(key, seen) as (connection, workflow):
        if not may_stop and runs_anything(connection, workflow.id):
            raise TransitionRefused(_(
                "Tasks of workflow {workflow} are running: to stop them needs the permission to "
                "stop tasks.",
                workflow=workflow.id,
            ))  # fmt: skip
        verbs.cancel(connection, workflow.id, by=by, reason=reason)


def pause_workflow(
    key: UUID | str, *, by: object = "", reason: str = "", seen: Seen = None
) -> None:
    """Release no more steps until it is resumed; running tasks go on.

    Raises as `cancel_workflow`.
    """
    with _locked(key, seen) as (connection, workflow):
        verbs.pause(connection, workflow.id, by=by, reason=reason)


def resume_workflow(
    key: UUID | str, *, by: object = "", reason: str = "", seen: Seen = None
) -> None:
    """Release what a pause kept back. Raises as `cancel_workflow`, and for one not paused."""
    with _locked(key, seen) as (connection, workflow):
        verbs.resume(connection, workflow.id, by=by, reason=reason)


def retry_workflow(
    key: UUID | str,
    *,
    from_step: str | None = None,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
) -> None:
    """Run failed and cancelled steps again in place; run `from_step` and all steps behind it anew.

    Raises as `cancel_workflow`, and also if there is nothing to retry or the step is unknown.
    """
    with _locked(key, seen) as (connection, workflow):
        verbs.retry(connection, workflow.id, by=by, reason=reason, from_step=from_step or None)


def resolve_workflow(
    key: UUID | str,
    *,
    step: str,
    value: Any,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
) -> None:
    """Count a failed step as succeeded with this result.

    The steps that its failure cancelled wait again. Raises as `cancel_workflow`, and also if the
    step has not failed or does not exist. Raises `InvalidArguments` if the value is not JSON or is
    too large.
    """
    with _locked(key, seen) as (connection, workflow):
        verbs.resolve(connection, workflow.id, step=step, value=value, by=by, reason=reason)


def delete_workflow(
    key: UUID | str, *, by: object = "", reason: str = "", seen: Seen = None
) -> bool:
    """Delete an ended workflow with its tasks and children. Return whether all of it is gone.

    Of a large workflow this deletes as much as a worker does in one transaction; workers delete the
    rest. Raises as `cancel_workflow`, and also for a child, which is deleted with its parent.
    """
    with _locked(key, seen) as (connection, workflow):
        if workflow.status not in FINAL_WORKFLOWS:
            raise TransitionRefused(_(
                "Workflow {workflow} is {status}: cancel it before you delete it.",
                workflow=workflow.id, status=workflow.status,
            ))  # fmt: skip
        steps = Step.objects.using(connection.alias).filter(id=workflow.parent_step_id or 0)
        if parent := steps.values_list("workflow_id", flat=True).first():
            raise TransitionRefused(_(
                "Workflow {workflow} is a step of workflow {parent}, and is deleted with it.",
                workflow=workflow.id, parent=parent,
            ))  # fmt: skip
        act = Act(str(workflow.id), before=workflow.status)
        audit(connection, verbs.NOUN, "delete", [act], person=person(by, reason))
        workflow.prune_after = dialect_for(connection).now(connection)
        workflow.save(using=connection.alias, update_fields=["prune_after"])
        return delete_some(connection, workflow.id)


def runs_anything(connection: BaseDatabaseWrapper, workflow_id: UUID) -> bool:
    """Return whether a worker runs a task of the workflow or of one of its children."""
    steps = Step.objects.using(connection.alias).filter(
        workflow_id__in=family_of(connection, workflow_id)
    )
    members = Member.objects.using(connection.alias).filter(step__in=steps)
    running = Lease.objects.using(connection.alias).filter(status=LeaseStatus.RUNNING)
    return running.filter(task_id__in=members.values("task_id")).exists()


@contextmanager
def _locked(key: UUID | str, seen: Seen) -> Iterator[tuple[BaseDatabaseWrapper, Workflow]]:
    """Lock the workflow in a transaction. Raises `WorkflowDoesNotExist` and `ChangedMeanwhile`."""
    connection = project_connection()
    rows = Workflow.objects.using(connection.alias)
    with atomic(using=connection.alias):
        take_write_lock(connection)
        try:
            workflow = rows.select_for_update().get(id=UUID(str(key)))
        except (ValueError, Workflow.DoesNotExist):
            raise WorkflowDoesNotExist(_("There is no workflow {key}.", key=key)) from None
        require_seen(workflow, seen, _("Workflow {workflow}", workflow=workflow.id))
        yield connection, workflow
