"""Retry workflows: decide which steps run again, and what is kept of them.

A failed step runs again in place: those of its tasks that did not succeed, with their rows and
attempts, and the calls that were not sent yet. Steps that were cancelled or skipped because of it
wait again. If a step has to run from the beginning, all of its tasks do, and their results and
child workflows are deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean
from taskqueue.core.workflow_states import (
    FINAL_STEPS,
    OnFailure,
    StepKind,
    StepStatus,
    WorkflowStatus,
)
from taskqueue.engine.control.changes import reopen_runs
from taskqueue.engine.workflows.advancing import Advance
from taskqueue.engine.workflows.dependants import count_anew
from taskqueue.engine.workflows.discarding import discard_steps
from taskqueue.engine.workflows.ending import begin_again
from taskqueue.engine.workflows.releasing import has_failed
from taskqueue.engine.workflows.reopening import Reopener, counted_members
from taskqueue.engine.workflows.requests import has_parts
from taskqueue.engine.workflows.results import RESOLVED, Results
from taskqueue.exceptions import TransitionRefused, WorkflowDoesNotExist
from taskqueue.models import Dependency, Step, Task, Workflow

UNSUCCESSFUL = FINAL_STEPS - {StepStatus.SUCCEEDED}


class Retry:
    """Decides which steps of one locked workflow run again.

    `begin` then releases those that wait for nothing.
    """

    def __init__(
        self, connection: BaseDatabaseWrapper, workflow: Workflow, *, now: datetime
    ) -> None:
        self._connection = connection
        self._workflow = workflow
        self._now = now
        rows = Step.objects.using(connection.alias).filter(workflow_id=workflow.id)
        # A fold holds one of these locks for one statement at most.
        self._steps = {step.id: step for step in rows.order_by("id").select_for_update()}
        self._reopener = Reopener(connection, workflow, self._steps, now=now)
        self._below: dict[int, list[int]] = defaultdict(list)
        self._resolved: set[int] = set()
        edges = Dependency.objects.using(connection.alias).filter(upstream__workflow=workflow.id)
        for upstream_id, downstream_id in edges.values_list("upstream_id", "downstream_id"):
            self._below[upstream_id].append(downstream_id)

    def retry(self, anew: set[int]) -> None:
        """Run failed and stopped steps again, and the steps `anew` from the beginning.

        If compensations have run, all steps run anew. Raises `TransitionRefused` if there is
        nothing to do.
        """
        anew = anew | self._forget_compensations()
        failed = self.failed()
        if not (failed or anew or self._workflow.stop_requested_at):
            raise TransitionRefused(_(
                "Workflow {workflow} is {status}, and none of its steps has failed.",
                workflow=self._workflow.id, status=self._workflow.status,
            ))  # fmt: skip
        self.reopen(failed, anew=anew)

    def failed(self) -> set[int]:
        """Return the failed steps that make the workflow fail, and the fan-outs that caused it."""
        found = self._decisive()
        return found | self._fans_of(found)

    def _forget_compensations(self) -> set[int]:
        """Discard the compensations that have run. Return all steps if there were any, else none.

        The compensations have undone the work of the steps, so all of them must run anew.
        """
        run = [step.id for step in self._steps.values() if step.compensates_id is not None]
        if not run:
            return set()
        for id in discard_steps(self._connection, self._workflow, run, now=self._now):
            step = self._steps.pop(id)
            self._workflow.members -= counted_members(self._connection, step)
            self._workflow.total_steps -= 1
        return {id for id, step in self._steps.items() if step.parent_step_id is None}

    def _require_no_compensations(self) -> None:
        if any(step.compensates_id is not None for step in self._steps.values()):
            raise TransitionRefused(_(
                "Steps of workflow {workflow} have been compensated: retry the workflow, which "
                "runs all of them anew.",
                workflow=self._workflow.id,
            ))  # fmt: skip

    def _decisive(self) -> set[int]:
        return {
            id
            for id in self._with_status(StepStatus.FAILED)
            if self._steps[id].on_failure == OnFailure.FAIL
        }

    def step(self, name: str) -> Step:
        """Return the step with that name.

        Raises `WorkflowDoesNotExist`, and `TransitionRefused` for a compensation.
        """
        named = {step.name: step for step in self._steps.values() if step.parent_step_id is None}
        if name not in named:
            raise WorkflowDoesNotExist(_(
                "Workflow {workflow} has no step {name!r}.{hint}",
                workflow=self._workflow.id, name=name, hint=did_you_mean(name, named),
            ))  # fmt: skip
        if named[name].compensates_id is not None:
            raise TransitionRefused(_(
                "Step {name!r} is a compensation: retry the workflow, which runs all steps anew.",
                name=name,
            ))  # fmt: skip
        return named[name]

    def behind(self, step_id: int) -> set[int]:
        """Return the steps that depend on this one, directly or indirectly."""
        found: set[int] = set()
        ahead = [step_id]
        while ahead:
            for id in self._below[ahead.pop()]:
                if id not in found:
                    found.add(id)
                    ahead.append(id)
        return found

    def retry_task(self, task: Task) -> None:
        """Run an unsuccessful task again: with its step, or alone if the step is still running.

        Raises `TransitionRefused` if the step succeeded without the task, or fails because of
        others.
        """
        self._require_no_compensations()
        step = self._steps.get(task.step_id or 0)
        if step is not None and step.status == StepStatus.RUNNING:
            self._reopener.reopen_task(step, task.id)
            if has_failed(step):
                raise TransitionRefused(_(
                    "Step {step!r} of workflow {workflow} fails because of other tasks: retry it "
                    "once it has failed.",
                    step=step.name, workflow=self._workflow.id,
                ))  # fmt: skip
            return
        failed: set[int] = set()
        while step is not None and step.status != StepStatus.RUNNING:
            if step.status == StepStatus.SUCCEEDED:
                raise TransitionRefused(_(
                    "Step {step!r} of workflow {workflow} has succeeded without task {task}: retry "
                    "the workflow from that step.",
                    step=step.name, workflow=self._workflow.id, task=task.id,
                ))  # fmt: skip
            failed.add(step.id)
            step = self._steps.get(step.parent_step_id or 0)
        self.reopen(failed)

    def reopen(self, again: Collection[int], *, anew: Collection[int] = ()) -> None:
        """Run the steps `again` in place, and `anew` from the beginning, with all they cancelled.

        Raises `TransitionRefused` if a step of `anew` is running.
        """
        seeds = set(again)
        if self._workflow.stop_requested_at is not None:
            # Stopped steps wait again, whatever they depended on. Fan-outs follow their step: a
            # step that has succeeded without them stays as it is.
            stopped = self._with_status(StepStatus.CANCELLED)
            seeds |= {id for id in stopped if self._steps[id].parent_step_id is None}
        # Also steps of an earlier retry that were stopped before all of their tasks were reopened.
        unfinished = {id for id in seeds if self._is_unfinished(self._steps[id])}
        fresh = self._behind_these(seeds | self._resolved, set(anew) | unfinished)
        seeds = (seeds | self._fans_of(seeds)) - fresh
        for id in sorted(seeds):
            self._reopen_children(self._steps[id])
        self._reopener.reopen(seeds, fresh)
        # Other steps may wait for those that had failed.
        waiting = self._with_status(StepStatus.WAITING)
        count_anew(self._connection, sorted(waiting))
        self._reopen_workflow()

    def _is_unfinished(self, step: Step) -> bool:
        return step.reopens_all and step.reopen_from is not None

    def _behind_these(self, seeds: Collection[int], anew: set[int]) -> set[int]:
        """Return the steps that run anew: `anew`, and unsuccessful steps behind any that run again.

        A succeeded step is kept, and so are the steps that depend on it alone.
        """
        for id in anew:
            step = self._steps[id]
            if step.status == StepStatus.RUNNING:
                raise TransitionRefused(_(
                    "Step {step!r} of workflow {workflow} is running: cancel the workflow, or wait "
                    "until the step has ended.",
                    step=step.name, workflow=self._workflow.id,
                ))  # fmt: skip
        ahead = [*seeds, *anew]
        while ahead:
            for id in self._below[ahead.pop()]:
                if id not in anew and self._steps[id].status in UNSUCCESSFUL:
                    anew.add(id)
                    ahead.append(id)
        return anew

    def _reopen_children(self, step: Step) -> None:
        """Reopen the failed steps in the children of a step; the children begin with the step."""
        children = Workflow.objects.using(self._connection.alias).filter(parent_step_id=step.id)
        in_order = children.order_by("id").select_for_update()
        again: list[Workflow] = []
        if step.kind == StepKind.WORKFLOW:
            again = list(in_order)[-1:]
        elif has_parts(step.request):
            again = list(in_order.exclude(status=WorkflowStatus.SUCCEEDED))
        for child in again:
            retry = Retry(self._connection, child, now=self._now)
            retry.reopen(retry.failed(), anew=retry._forget_compensations())

    def resolve(self, step: Step, value: Any) -> None:
        """Count a failed step as succeeded. Raises `TransitionRefused` if it has not failed.

        The steps that its failure cancelled wait again.
        """
        self._require_no_compensations()
        if step.status != StepStatus.FAILED:
            raise TransitionRefused(_(
                "Step {step!r} has not failed: it is {status}.", step=step.name, status=step.status
            ))  # fmt: skip
        step.status = StepStatus.SUCCEEDED
        step.request[RESOLVED] = value
        step.reason = "Resolved by hand."
        step.save(using=self._connection.alias, update_fields=["status", "request", "reason"])
        self._resolved.add(step.id)
        self.reopen(())

    def begin(self) -> None:
        """Release the steps that now wait for nothing."""
        Advance(self._connection, [self._workflow], now=self._now).begin()

    def _with_status(self, status: StepStatus) -> set[int]:
        return {id for id, step in self._steps.items() if step.status == status}

    def _fans_of(self, step_ids: Collection[int]) -> set[int]:
        """Return the unsuccessful fan-outs of members of these steps, at any depth."""
        found: set[int] = set()
        above = set(step_ids)
        while above:
            above = {
                id
                for id, step in self._steps.items()
                if step.parent_step_id in above and step.status != StepStatus.SUCCEEDED
            }
            found |= above
        return found

    def _reopen_workflow(self) -> None:
        """Set the workflow to running; a child begins with its step.

        Another may hold its unique key.
        """
        workflow, now = self._workflow, self._now
        workflow.open_steps = sum(step.status not in FINAL_STEPS for step in self._steps.values())
        workflow.error, workflow.failed_step = None, ""
        if left := self._decisive():
            step = self._steps[min(left)]
            workflow.failed_step = step.name
            workflow.error = Results(self._connection.alias, workflow.id).failure(step)
        if workflow.parent_step_id is None:
            begin_again(workflow, now)
            reopen_runs(self._connection, [workflow])
        elif workflow.parent_place is not None:  # It shows its step which children to run again.
            workflow.finished_at = None
        workflow.save(using=self._connection.alias)
