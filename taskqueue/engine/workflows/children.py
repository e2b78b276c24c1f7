"""Children: workflows that run as steps of others, or as members of their maps."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.workflow_states import StepStatus, WorkflowStatus
from taskqueue.declarations.workflows.graph_json import graph_from_json
from taskqueue.engine.workflows.ending import begin_again
from taskqueue.engine.workflows.inserting import Origin, insert_rows
from taskqueue.engine.workflows.requests import child_graph
from taskqueue.engine.workflows.stopping import held_children, request_stop
from taskqueue.models import Step, Workflow

NOT_SENT = "Its step ended without it."


class BeginChild(Protocol):
    """Begins the roots of a new child workflow."""

    def __call__(
        self, connection: BaseDatabaseWrapper, workflow: Workflow, *, now: datetime
    ) -> None: ...


class Children:
    """Begins children of locked workflows, within one transaction."""

    def __init__(
        self, connection: BaseDatabaseWrapper, *, now: datetime, begin: BeginChild
    ) -> None:
        self._connection = connection
        self._now = now
        self._begin = begin

    def start(self, workflow: Workflow, step: Step) -> None:
        """Insert the child of a step, or run an existing child again that a retry has kept."""
        rows = Workflow.objects.using(self._connection.alias).filter(parent_step_id=step.id)
        child = rows.order_by("id").select_for_update().last()
        if child is None:
            origin = Origin(
                parent_step_id=step.id, deadline_at=workflow.deadline_at,
                paused_at=workflow.paused_at if workflow.is_held else None,
            )  # fmt: skip
            child = insert_rows(
                self._connection, child_graph(step.request), now=self._now, origin=origin
            )
            if workflow.status == WorkflowStatus.STOPPING:  # The step waited for a retry.
                reason, by = workflow.stop_reason, workflow.stop_requested_by
                request_stop(self._connection, child, now=self._now, reason=reason, by=by)
            self._begin(self._connection, child, now=self._now)
        else:
            self.begin_again(child)

    def send(self, workflow: Workflow, step: Step, place: int, graph: dict[str, Any]) -> None:
        """Insert the child for one place of a map."""
        origin = Origin(
            parent_step_id=step.id, parent_place=place, deadline_at=workflow.deadline_at
        )
        child = insert_rows(self._connection, graph_from_json(graph), now=self._now, origin=origin)
        self._begin(self._connection, child, now=self._now)

    def begin_again(self, child: Workflow) -> None:
        """Run a child again that has been waiting since a retry."""
        begin_again(child, self._now)
        child.save(using=self._connection.alias)
        rows = Step.objects.using(self._connection.alias).filter(workflow=child)
        rows.filter(status=StepStatus.WAITING, reopen_from__isnull=False).update(is_due=True)
        self._begin(self._connection, child, now=self._now)

    def end_held(self, step: Step) -> None:
        """End the children of a map that wait to run again; none of their steps is released.

        Each child is begun after its stop was requested, so that it ends at once.
        """
        for child in held_children(self._connection, [step.id]):
            begin_again(child, self._now)
            child.save(using=self._connection.alias)
            request_stop(self._connection, child, now=self._now, reason=NOT_SENT)
            self._begin(self._connection, child, now=self._now)
