"""End steps and their workflows, within one transaction and under the workflows' locks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.workflow_states import OnFailure, StepStatus, WorkflowStatus
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import ANYWHERE
from taskqueue.engine.workflows.counts import count_ended
from taskqueue.engine.workflows.ending import end_if_over, will_succeed, write_ends
from taskqueue.engine.workflows.fan_outs import drop_unused
from taskqueue.engine.workflows.moves import write_moves
from taskqueue.engine.workflows.releases import Pending
from taskqueue.engine.workflows.releasing import Releaser, has_failed
from taskqueue.engine.workflows.results import Results
from taskqueue.engine.workflows.stopping import request_stop
from taskqueue.models import Step, Workflow


class Closing:
    """Ends steps of locked workflows, and then the workflows that have no open steps left."""

    def __init__(
        self,
        connection: BaseDatabaseWrapper,
        workflows: Mapping[UUID, Workflow],
        *,
        now: datetime,
        stop: Callable[[Workflow], None],
        is_lazy: bool,
    ) -> None:
        """`stop` is called for a workflow that a failure stops; `is_lazy` is as for `Advance`."""
        self._connection = connection
        self._workflows = workflows
        self._now = now
        self._stop = stop
        self._is_lazy = is_lazy
        self._ended: dict[UUID, int] = defaultdict(int)
        # Workflows whose rows must be written.
        self.touched: set[UUID] = set()
        # Succeeded steps, each of another workflow; `pass_on` writes their ends.
        self.successes: list[int] = []
        # Steps in which a child has ended; the end of the child was noted for them.
        self.told: set[int] = set()

    def end(self, complete: Sequence[Step]) -> list[Step]:
        """End running steps whose members have all ended. Return those that ended."""
        for step in complete:
            if step.status != StepStatus.RUNNING:
                continue
            workflow = self._workflows[step.workflow_id]
            if not has_failed(step):
                step.status = StepStatus.SUCCEEDED
            elif workflow.status == WorkflowStatus.STOPPING and step.name != workflow.failed_step:
                step.status = StepStatus.CANCELLED
            else:
                step.status = StepStatus.FAILED
        self.write(complete)
        return [step for step in complete if step.finished_at is not None]

    def write(self, steps: Sequence[Step]) -> None:
        """Write the ends of steps, and note which failure decides the end of their workflow."""
        alike: dict[tuple[str, str], list[int]] = defaultdict(list)
        new = [step for step in steps if step.finished_at is None]
        for step in new:
            step.finished_at = self._now
            alike[str(step.status), step.reason].append(step.id)
            self._ended[step.workflow_id] += 1
            self.touched.add(step.workflow_id)
        # Steps of one workflow may depend on each other, which `pass_on` does not allow.
        are_apart = len({step.workflow_id for step in new}) == len(new)
        if are_apart and list(alike) == [(StepStatus.SUCCEEDED.value, "")]:
            self.successes = alike.popitem()[1]
        for (status, reason), ids in alike.items():
            rows = Step.objects.using(self._connection.alias).filter(id__in=ids)
            rows.update(status=status, reason=reason, finished_at=self._now, is_due=False)
        for step in steps:
            if step.status == StepStatus.FAILED and step.on_failure == OnFailure.FAIL:
                self.fail(self._workflows[step.workflow_id], step)

    def fail(self, workflow: Workflow, step: Step) -> None:
        """Record that this step makes the workflow fail.

        With `fail_fast`, stop the workflow now.
        """
        if not workflow.failed_step:
            workflow.failed_step = step.name
            workflow.error = Results(self._connection.alias, workflow.id).failure(step)
            workflow.save(using=self._connection.alias, update_fields=["failed_step", "error"])
        if workflow.fail_fast and workflow.status == WorkflowStatus.RUNNING:
            request_stop(self._connection, workflow, now=self._now, reason="A step failed.")
            self._stop(workflow)

    def close(self, releaser: Releaser) -> None:
        """Count the ended steps in their workflows, and end those that have no open steps left."""
        touched = [self._workflows[id] for id in sorted(self.touched)]
        wakes = releaser.has_released
        wakes_for_pending = bool(releaser.pending.plain)
        pending, releaser.pending = releaser.pending, Pending()
        moves = self._count_down(touched)
        # The end of a workflow is final: nobody may see an end that a crash of the server undoes.
        is_lazy = self._is_lazy and all(workflow.open_steps > 0 for workflow in touched)
        releaser.queues |= write_moves(
            self._connection, moves, now=self._now, wakes=wakes, pending=pending, is_lazy=is_lazy
        )
        wakes = wakes or wakes_for_pending
        ended: list[Workflow] = []
        for workflow in touched:
            if end_if_over(self._connection, workflow, now=self._now):
                ended.append(workflow)
                if workflow.parent_step_id:
                    self.told.add(workflow.parent_step_id)
            elif workflow.status == WorkflowStatus.COMPENSATING:
                releaser.queues.add(None)
        if ended:
            write_ends(self._connection, ended)
            count_ended(self._connection, ended)
            drop_unused(self._connection, [workflow.id for workflow in ended])
        if releaser.has_released and not wakes:
            dialect_for(self._connection).wake_sleeping(self._connection, ANYWHERE)
        if ended:
            releaser.queues.add(None)  # For callbacks. They have woken workers themselves.

    def _count_down(self, workflows: Iterable[Workflow]) -> list[tuple[UUID, int]]:
        """Subtract ended steps from `open_steps`.

        Return the workflows still to be written, with the numbers. A workflow that will succeed is
        left out: it is written once, with its end.
        """
        moves: list[tuple[UUID, int]] = []
        for workflow in workflows:
            number = self._ended[workflow.id]
            workflow.open_steps -= number
            workflow.moved_at, workflow.trouble = self._now, ""
            if not will_succeed(workflow):
                moves.append((workflow.id, number))
        return moves
