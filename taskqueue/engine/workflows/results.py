"""Results of steps, read from their tasks; arguments and conditions refer to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import Exists, OuterRef

from taskqueue.core.states import TaskStatus
from taskqueue.core.workflow_states import StepKind, StepStatus, WorkflowStatus
from taskqueue.declarations.workflows.reference_data import (
    Target,
    resolve,
    substitute,
    targets_in,
    value_of,
)
from taskqueue.declarations.workflows.resolution import resolved_call, return_value
from taskqueue.engine.workflows.inputs import read_inputs
from taskqueue.engine.workflows.members import LazyResults, MemberResults
from taskqueue.exceptions import InvalidWorkflow
from taskqueue.models import Member, Step, Task, Workflow

UNSUCCESSFUL = (TaskStatus.FAILED, TaskStatus.CANCELLED)
# The most steps that are read at once, and the fewest for which that is worth it.
BATCH, FEWEST_AHEAD = 200, 3
# The key under which the request of a step keeps a result that somebody gave by hand.
RESOLVED = "resolved"
INVALID = "taskqueue.exceptions.InvalidWorkflow"
DELETED = "taskqueue.exceptions.TaskDoesNotExist"
# The fields that describe the error of a member.
ERROR = ("task__error_class", "task__error_message", "task_id")
Arguments = tuple[list[Any], dict[str, Any]]


class Results:
    """The results of the steps of one workflow; each is read once."""

    def __init__(
        self, alias: str, workflow_id: UUID, *, known: Mapping[str, Any] | None = None
    ) -> None:
        """`known`: results that were read before, by the names of their steps."""
        self._alias = alias
        self._known = known or {}
        self._workflow_id = workflow_id
        self._steps: dict[str, Step] = {}
        self._values: dict[int, Any] = {}
        self._workflow: Workflow | None = None

    @property
    def workflow(self) -> Workflow:
        """The workflow's row."""
        if self._workflow is None:
            self._workflow = Workflow.objects.using(self._alias).get(id=self._workflow_id)
        return self._workflow

    def read(self, target: Target) -> Any:
        """Return the whole result, error or argument to which a target refers."""
        if target.argument is not None:
            return self._argument(target.argument)
        if target.steps:
            if target.part == "error":
                return self.error_of(target.steps)
            is_whole = not target.path and (target.is_lazy or target.is_length)
            lazy = self._lazily(target.steps[0]) if is_whole else None
            return self.result_of(target.steps[0]) if lazy is None else lazy
        return self.workflow.error if target.part == "error" else self.return_value()

    def is_missing(self, text: str) -> bool:
        """Return whether a reference, given as JSON text, is to a step that did not succeed."""
        names = [name for target in targets_in(text) for name in target.steps]
        steps = filter(None, map(self._step, names))
        return any(step.status != StepStatus.SUCCEEDED for step in steps)

    def return_value(self) -> Any:
        """Return the result of the workflow; None if its last steps have none."""
        self._read_ahead(self.workflow.last)
        return return_value(self.workflow.last, self.read) if self.workflow.last else None

    def _read_ahead(self, names: Sequence[str]) -> None:
        """Read steps that will be needed, and the results of single tasks, many in one query."""
        wanted = [name for name in names if name not in self._steps and name not in self._known]
        if len(wanted) < FEWEST_AHEAD:
            return
        rows = Step.objects.using(self._alias).filter(workflow_id=self._workflow_id)
        for first in range(0, len(wanted), BATCH):
            found = list(rows.filter(name__in=wanted[first : first + BATCH]))
            self._steps |= {step.name: step for step in found}
            single = [
                step
                for step in found
                if step.kind == StepKind.TASK
                and step.status == StepStatus.SUCCEEDED
                and RESOLVED not in step.request
            ]
            try:
                values = MemberResults(self._alias, self._child_result).of_each(single)
            except InvalidWorkflow:
                continue  # Too large together, so each is read by itself.
            for step_id, members in values.items():
                self._values[step_id] = members[0] if members else None

    def result_of(self, name: str) -> Any:
        """Return the result of a step; None if it did not succeed."""
        if name in self._known:
            return self._known[name]
        step = self._step(name)
        if step is None or step.status != StepStatus.SUCCEEDED:
            return None
        if step.id not in self._values:
            self._values[step.id] = self._result(step)
        return self._values[step.id]

    def _result(self, step: Step) -> Any:
        if RESOLVED in step.request:
            return step.request[RESOLVED]
        if step.kind == StepKind.JOIN:
            self._read_ahead(step.inputs)
            return resolve(step.request["value"], self.read)
        if step.kind == StepKind.WORKFLOW:
            return self._child_result(step)
        values = MemberResults(self._alias, self._child_result).of(step)
        return values if step.kind == StepKind.MAP else (values[0] if values else None)

    def _lazily(self, name: str) -> LazyResults | None:
        """Return a step's result as a lazy sequence, if the step has members and has succeeded."""
        step = self._step(name)
        if step is not None and step.kind == StepKind.TASK:
            # Its task may have returned a fan-out.
            fans = Step.objects.using(self._alias).filter(parent_step_id=step.id)
            step = fans.filter(kind=StepKind.MAP).first()
        if step is None or step.kind != StepKind.MAP or step.status != StepStatus.SUCCEEDED:
            return None
        if RESOLVED in step.request:  # The result was given by hand, not by its members.
            return None
        return LazyResults(self._alias, step, self._child_result)

    def _child_result(self, step: Step, place: int | None = None) -> Any:
        child = self._child(step, place)
        return None if child is None else Results(self._alias, child.id).return_value()

    def error_of(self, names: Iterable[str]) -> dict[str, Any] | None:
        """Return the error of the first of these steps that failed; None if none did."""
        for name in names:
            step = self._step(name)
            if step is not None and step.status == StepStatus.FAILED:
                return self.failure(step)
        return None

    def errors_of_steps(self) -> dict[str, dict[str, Any]]:
        """Return the errors of failed steps by name, in the order in which the steps were built."""
        rows = Step.objects.using(self._alias).filter(workflow_id=self._workflow_id)
        failed = list(rows.filter(status=StepStatus.FAILED).order_by("id"))
        single = [step for step in failed if step.kind == StepKind.TASK and not step.reason]
        tasks: dict[int, dict[str, Any]] = {}
        for first in range(0, len(single), BATCH):
            ids = [step.id for step in single[first : first + BATCH]]
            members = Member.objects.using(self._alias).filter(step_id__in=ids, place__gte=0)
            ended = members.filter(task__status__in=UNSUCCESSFUL)
            for step_id, *error in ended.values_list("step_id", *ERROR):
                tasks[step_id] = _error(*error)
        return {step.name: tasks.get(step.id) or self.failure(step) for step in failed}

    def failure(self, step: Step) -> dict[str, Any]:
        """Return why a step failed: the error of the first of its tasks that failed."""
        # A reason that is not one of its members comes first.
        errors = {} if step.reason else self.errors(step, most=1)
        for place, error in errors.items():
            return error if step.kind != StepKind.MAP else error | {"place": place}
        if step.kind == StepKind.WORKFLOW and (child := self._child(step)) and child.error:
            return dict(child.error)
        return {"error_class": INVALID, "message": step.reason, "task_id": None}

    def errors_of(self, name: str) -> dict[int, dict[str, Any]]:
        """Return the errors of the members of a step by name, as `errors` does."""
        step = self._step(name)
        return {} if step is None else self.errors(step)

    def errors(self, step: Step, *, most: int | None = None) -> dict[int, dict[str, Any]]:
        """Return the errors of unsuccessful members by their places, in order.

        The error of a fan-out is that of its member. `most`: return only the first `most` errors.
        """
        members = Member.objects.using(self._alias).filter(step_id=step.id, place__gte=0)
        tasks = members.filter(task__status__in=UNSUCCESSFUL).order_by("place")
        rows = tasks.values_list("place", *ERROR)[:most]
        errors = {place: _error(*error) for place, *error in rows}
        fans = Step.objects.using(self._alias).filter(parent_step_id=step.id)
        failed = fans.filter(status__in=[StepStatus.FAILED, StepStatus.CANCELLED])
        for fan in failed.order_by("parent_place")[:most]:
            errors[fan.parent_place or 0] = self.failure(fan)
        children = Workflow.objects.using(self._alias).filter(
            parent_step_id=step.id, parent_place__isnull=False,
            status__in=[WorkflowStatus.FAILED, WorkflowStatus.CANCELLED],
        )  # fmt: skip
        for child in children.order_by("parent_place")[:most]:
            errors[child.parent_place or 0] = child.error or _cancelled(child)
        wanted = step.failures if most is None else min(step.failures, most)
        if len(errors) < wanted:
            # Done only here, because it looks up the task of every member.
            rest = members.exclude(Exists(Task.objects.filter(id=OuterRef("task_id"))))
            for place, task_id in rest.order_by("place").values_list("place", "task_id")[:most]:
                errors[place] = _error(DELETED, f"Task {task_id} was deleted.", task_id)
        return dict(sorted(errors.items())[:most])

    def _child(self, step: Step, place: int | None = None) -> Workflow | None:
        children = Workflow.objects.using(self._alias).filter(
            parent_step_id=step.id, parent_place=place
        )
        return children.order_by("id").last()

    def _step(self, name: str) -> Step | None:
        if name not in self._steps:
            rows = Step.objects.using(self._alias).filter(workflow_id=self._workflow_id)
            found = rows.filter(name=name).first()
            if found is None:
                return None
            self._steps[name] = found
        return self._steps[name]

    def _argument(self, origin: int | str) -> Any:
        """Return an argument of the workflow. In a child it may refer to steps of the parent."""
        workflow = self.workflow
        stored = workflow.args[origin] if isinstance(origin, int) else workflow.kwargs[origin]
        return substitute(stored, lambda target: value_of(target, self._parent().read))

    def _parent(self) -> Results:
        parent_step_id = self.workflow.parent_step_id
        assert parent_step_id is not None
        parent = Step.objects.using(self._alias).only("workflow_id").get(id=parent_step_id)
        return Results(self._alias, parent.workflow_id)


def _error(path: str, message: str, task_id: UUID) -> dict[str, Any]:
    return {"error_class": path, "message": message, "task_id": str(task_id)}


def _cancelled(child: Workflow) -> dict[str, Any]:
    reason = child.stop_reason or f"Workflow {child.id} was cancelled."
    return {"error_class": INVALID, "message": reason, "task_id": None}


def arguments_of(alias: str, *, task_id: str, args: str, kwargs: str) -> Arguments:
    """Return the arguments of a step's task, with results in place of references.

    Raises `InvalidWorkflow` if a result lacks the part that is referred to.
    """
    targets = [*targets_in(args), *targets_in(kwargs)]
    if not targets:
        return resolved_call(args, kwargs, _nothing)
    names = {name for target in targets for name in target.steps}
    workflow_id, known = read_inputs(connections[alias], task_id, names)
    if workflow_id is None:
        step = Task.objects.using(alias).filter(id=task_id).values_list("step__workflow_id").get()
        workflow_id = step[0]
    return resolved_call(args, kwargs, Results(alias, workflow_id, known=known).read)


def _nothing(target: Target) -> Any:
    raise AssertionError(f"{target} in arguments without references")
