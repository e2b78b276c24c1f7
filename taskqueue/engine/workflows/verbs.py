"""What people do to workflows by hand: each verb locks the workflow first, and is audited."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F
from django.db.transaction import atomic

from taskqueue.core.workflow_states import StepStatus, WorkflowStatus
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import ANYWHERE
from taskqueue.engine.sessions import take_write_lock
from taskqueue.engine.workflows.advancing import Advance
from taskqueue.engine.workflows.stopping import request_stop
from taskqueue.exceptions import TransitionRefused, WorkflowDoesNotExist
from taskqueue.models import Step, Workflow

NOUN = "workflow"
ACTIVE = frozenset({WorkflowStatus.RUNNING})


def cancel(
    connection: BaseDatabaseWrapper, workflow_id: UUID, *, by: object, reason: object
) -> None:
    """Stop a workflow: nothing more is released, and what runs is asked to stop.

    This transaction stops as much as a worker does in one; workers do the rest.
    """
    with _locked(connection, workflow_id, "cancel", by=by, reason=reason) as (workflow, now):
        who = person(by, reason)
        request_stop(connection, workflow, now=now, reason=who.reason, by=who.by)
        Advance(connection, [workflow], now=now).run()
        dialect_for(connection).wake_sleeping(connection, ANYWHERE)


def pause(
    connection: BaseDatabaseWrapper, workflow_id: UUID, *, by: object, reason: object
) -> None:
    """Release nothing more until it is resumed."""
    with _locked(connection, workflow_id, "pause", by=by, reason=reason) as (workflow, now):
        workflow.paused_at = workflow.paused_at or now
        workflow.save(using=connection.alias, update_fields=["paused_at"])


def resume(
    connection: BaseDatabaseWrapper, workflow_id: UUID, *, by: object, reason: object
) -> None:
    """Release what the pause has kept back."""
    with _locked(connection, workflow_id, "resume", by=by, reason=reason) as (workflow, now):
        workflow.paused_at = None
        workflow.save(using=connection.alias, update_fields=["paused_at"])
        rows = Step.objects.using(connection.alias).filter(workflow_id=workflow.id)
        unsent = rows.filter(status=StepStatus.RUNNING, released__lt=F("members"))
        unsent.update(is_due=True)
        Advance(connection, [workflow], now=now).begin()


@contextmanager
def _locked(
    connection: BaseDatabaseWrapper, workflow_id: UUID, verb: str, *, by: object, reason: object
) -> Iterator[tuple[Workflow, datetime]]:
    """Lock a running workflow for a verb, and audit it.

    Raises `WorkflowDoesNotExist`, and `TransitionRefused` if it does not run.
    """
    with atomic(using=connection.alias):
        take_write_lock(connection)
        rows = Workflow.objects.using(connection.alias).filter(id=workflow_id)
        workflow = rows.select_for_update().first()
        if workflow is None:
            raise WorkflowDoesNotExist(f"There is no workflow {workflow_id}.")
        if workflow.status not in ACTIVE:
            raise TransitionRefused(f"Workflow {workflow_id} is {workflow.status}.")
        act = Act(str(workflow.id), before=workflow.status)
        yield workflow, dialect_for(connection).now(connection)
        audit(connection, NOUN, verb, [act], person=person(by, reason))
