"""Advance workflows once steps are complete, under the locks of the workflows.

Locks: workflows by id, then their steps, then only rows that no other session waits for. A workflow
that another session has locked is skipped: that session looks again after its COMMIT.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, QuerySet

from taskqueue.core.workflow_states import OnFailure, StepKind, StepStatus, WorkflowStatus
from taskqueue.engine.workflows.closing import Closing
from taskqueue.engine.workflows.dependants import fate, pass_on, tell_parents
from taskqueue.engine.workflows.locking import lock_due_steps
from taskqueue.engine.workflows.notes import apply_notes
from taskqueue.engine.workflows.releasing import Releaser, has_failed
from taskqueue.engine.workflows.reopening import MOST_REOPENED, reopen_some, save_counts
from taskqueue.engine.workflows.stopping import cancel_steps, stop_some
from taskqueue.engine.workflows.tasks import NO_CALLS, Unsent
from taskqueue.models import Step, Workflow

# The most workflows, new members, and tasks to stop in one transaction.
MOST_WORKFLOWS, MOST_MEMBERS, MOST_STOPS = 200, 1000, 5000
# The most tasks of unreleased steps that one transaction cancels.
MOST_CANCELLED = 2000
# The most steps of one fold. With very many, the statement may compare each step with each note.
MOST_FOLDED = 50
STOPPED = "The workflow was stopped."


class Advance:
    """Advances workflows that the caller has locked, within one transaction."""

    def __init__(
        self,
        connection: BaseDatabaseWrapper,
        workflows: Iterable[Workflow],
        *,
        now: datetime,
        most_members: int | None = MOST_MEMBERS,
        unsent: Unsent = NO_CALLS,
        is_lazy: bool = False,
    ) -> None:
        """`unsent`: calls of maps that are stored nowhere, and that this transaction must send.

        `is_lazy`: this transaction only does what follows from notes, so losing it in a crash of
        the server does no harm.
        """
        self._connection = connection
        self._now = now
        self._workflows = {workflow.id: workflow for workflow in workflows}
        self._releaser = Releaser(
            connection, now=now, most_members=most_members, child=begin_child, unsent=unsent
        )
        self._closing = Closing(
            connection, self._workflows, now=now, stop=self._stop, is_lazy=is_lazy
        )
        # Whether other sessions had locked some of the tasks to stop.
        self.has_missed = False
        # How many more tasks may be stopped, cancelled and reopened; another transaction does the
        # rest.
        self._stops_left = MOST_STOPS
        self._cancels_left = MOST_CANCELLED
        self._reopens_left = MOST_REOPENED

    @property
    def told(self) -> set[int]:
        """Steps in which a child has ended; the end of the child was noted for them."""
        return self._closing.told

    @property
    def queues(self) -> set[str | None]:
        """The queues of tasks that became ready. None stands for tasks that may be in any queue."""
        return self._releaser.queues

    def begin(self) -> None:
        """Release the steps that wait for nothing: new roots, or steps that a pause held back."""
        rows = self._steps().filter(status=StepStatus.WAITING, waits=0, reopen_from=None)
        self._follow(self._decide(list(rows.order_by("id"))))
        self.run()

    def run(self, due: list[Step] | None = None) -> None:
        """Do everything that follows from the counted ends.

        `due`: the due steps, if they were read after their last change.
        """
        for workflow in self._workflows.values():
            if workflow.status == WorkflowStatus.STOPPING:
                self._stop(workflow)
            if workflow.open_steps == 0:  # A pause may have held back its compensations.
                self._closing.touched.add(workflow.id)
            if workflow.status == WorkflowStatus.STOPPING or getattr(workflow, "has_notes", False):
                due = None  # Stopping and notes make other steps due.
        self._apply_notes()
        due = self._due() if due is None else due
        while due:
            waiting = [step for step in due if step.status == StepStatus.WAITING]
            due = [step for step in due if step.status != StepStatus.WAITING]
            complete = [step for step in due if (step.members or 0) <= step.ended]
            others = [step for step in due if (step.members or 0) > step.ended]
            self._releaser.has_due = False
            ended = self._closing.end(complete)
            self._follow(ended)
            # Waiting steps count their fan-outs anew below, so parents are told of ended fan-outs
            # first.
            tell_parents(self._connection, ended)
            if waiting and ended:  # They may no longer wait for other steps.
                ids = {step.id for step in waiting}
                due = lock_due_steps(self._connection, self._workflows)
                waiting = [step for step in due if step.id in ids]
            gone_on = self._go_on(waiting)  # These steps read results that have been written now.
            self._follow(gone_on)
            tell_parents(self._connection, gone_on)
            ended += gone_on
            # `tell_parents` has raised `ended` of these parents since they were read: they stay
            # due.
            told = {step.parent_step_id for step in ended}
            others = [step for step in others if step.id not in told]
            if not self._feed(others) and not self._may_have_made_due(ended):
                break
            due = self._due()
        self._closing.close(self._releaser)

    def _apply_notes(self) -> None:
        """Apply the notes that the fold has left, and begin the fan-outs that they announce."""
        noted = {
            workflow.id: workflow
            for workflow in self._workflows.values()
            if getattr(workflow, "has_notes", False)
        }
        if noted:
            take = self._releaser.take
            fans = apply_notes(self._connection, noted, now=self._now, take=take)
            self._releaser.begin(noted, fans)
            self._closing.touched.update(step.workflow_id for step in fans)

    def _steps(self) -> QuerySet[Step]:
        return Step.objects.using(self._connection.alias).filter(workflow__in=[*self._workflows])

    def _due(self) -> list[Step]:
        """Lock and return the due steps: those for which an end decides something."""
        self._releaser.release_pending()
        return lock_due_steps(self._connection, self._workflows)

    def _may_have_made_due(self, ended: Sequence[Step]) -> bool:
        """Return whether these ends may have made other steps due in this transaction.

        Steps that other sessions make due meanwhile are found after the COMMIT.
        """
        return self._releaser.has_due or any(
            step.status != StepStatus.SUCCEEDED or step.parent_step_id is not None for step in ended
        )

    def _follow(self, ended: Sequence[Step]) -> None:
        """Pass ends on to the dependants until that ends no further step."""
        while ended:
            successes, self._closing.successes = self._closing.successes, []
            others = [step.id for step in ended if step.id not in set(successes)]
            ripe = pass_on(self._connection, others, succeeded=successes, now=self._now)
            ended = self._decide(ripe)

    def _decide(self, ripe: Sequence[Step]) -> list[Step]:
        """Release, skip or cancel steps that no longer wait for others.

        Return those that ended by this.
        """
        released: list[Step] = []
        ended: list[Step] = []
        dropped: list[Step] = []
        for step in ripe:
            workflow = self._workflows[step.workflow_id]
            status = fate(step)
            if workflow.status == WorkflowStatus.STOPPING:
                status = StepStatus.CANCELLED
            if status is StepStatus.CANCELLED:
                step.reason = step.reason or "A step that it depends on did not succeed."
            if status is StepStatus.RUNNING and workflow.is_held:
                continue
            if status is StepStatus.RUNNING:
                status = self._releaser.prepare(workflow, step)
            step.status = status
            if status is StepStatus.RUNNING:
                released.append(step)
                continue
            ended.append(step)
            if status is not StepStatus.FAILED or step.ended < (step.members or 0):
                dropped.append(step)
        self._releaser.release(self._workflows, released)
        self._closing.touched.update(step.workflow_id for step in released)
        ended = self._cancel(ended, dropped)
        self._closing.write(ended)
        return ended

    def _cancel(self, ended: list[Step], dropped: Sequence[Step]) -> list[Step]:
        """Cancel the tasks of the `dropped` steps.

        Return the `ended` steps without those still to do. A step with more tasks than one
        transaction may cancel stays due.
        """
        if not dropped:
            return ended
        number, left = cancel_steps(self._connection, dropped, most=self._cancels_left)
        self._cancels_left -= number
        for step in left:
            step.status = StepStatus.WAITING
        self._steps().filter(id__in=[step.id for step in left]).update(is_due=True)
        return [step for step in ended if step.status != StepStatus.WAITING]

    def _go_on(self, waiting: Sequence[Step]) -> list[Step]:
        """Reopen or cancel further tasks of waiting steps. Return the steps that ended by this."""
        done = [step for step in waiting if step.reopen_from is None]
        reopening = [step for step in waiting if step.reopen_from is not None]
        if reopening and self._reopens_left > 0:
            reopened, number = reopen_some(self._connection, reopening, most=self._reopens_left)
            self._reopens_left -= number
            done += reopened
        return self._decide([step for step in done if step.waits == 0])

    def _feed(self, steps: Sequence[Step]) -> bool:
        """Send further members, or drop the unsent ones of failed maps.

        Return whether any step changed.
        """
        has_moved = False
        for step in filter(has_failed, steps):
            workflow = self._workflows[step.workflow_id]
            decides = workflow.fail_fast and step.on_failure == OnFailure.FAIL
            if decides and workflow.status == WorkflowStatus.RUNNING:
                self._closing.fail(workflow, step)
        dropped = {step for step in steps if has_failed(step) or self._is_stopping(step)}
        if dropped:
            for step in dropped:
                if not has_failed(step):
                    # Even if all members that were sent succeed, the step has no result without the
                    # others.
                    step.reason = self._workflows[step.workflow_id].stop_reason or STOPPED
            has_moved = self._releaser.cut(sorted(dropped, key=attrgetter("id")))
        for step in steps:
            if step in dropped:
                continue
            if self._releaser.is_exhausted:
                break
            workflow = self._workflows[step.workflow_id]
            has_moved = self._releaser.send(workflow, step) or has_moved
            self._closing.touched.add(step.workflow_id)
        return has_moved and not self._releaser.is_exhausted

    def _is_stopping(self, step: Step) -> bool:
        return self._workflows[step.workflow_id].status == WorkflowStatus.STOPPING

    def _stop(self, workflow: Workflow) -> None:
        """Cancel waiting tasks and ask running ones to stop, within a transaction's bounds."""
        self._releaser.release_pending()
        unsent = self._steps().filter(workflow=workflow.id, released__lt=F("members") + F("held"))
        unsent.filter(status=StepStatus.RUNNING).update(is_due=True)
        rows = self._steps().filter(workflow=workflow.id, status=StepStatus.WAITING)
        waiting = list(rows.order_by("id"))
        for step in waiting:
            step.status = StepStatus.CANCELLED
            step.reason = workflow.stop_reason or STOPPED
        cancelled = self._cancel(waiting, waiting)
        self._closing.write(cancelled)
        # A retry has set the counts of these steps to zero, and has not yet reopened all of their
        # tasks.
        uncounted = [
            step
            for step in cancelled
            if step.reopen_from is not None and step.kind != StepKind.WORKFLOW
        ]
        save_counts(self._connection, uncounted)
        # A fan-out may have been waiting for a retry of which the step above has already begun
        # again; a step that was counted just now was counted with its fan-outs.
        told = {step.id for step in uncounted}
        fans = [step for step in cancelled if step.parent_step_id not in told]
        tell_parents(self._connection, fans)
        if self._stops_left > 0:
            stopped = stop_some(self._connection, workflow, now=self._now)
            self._stops_left -= stopped.number
            self.has_missed = self.has_missed or stopped.has_missed


def begin_child(connection: BaseDatabaseWrapper, workflow: Workflow, *, now: datetime) -> None:
    """Begin the roots of a workflow that this transaction has inserted."""
    Advance(connection, [workflow], now=now).begin()
