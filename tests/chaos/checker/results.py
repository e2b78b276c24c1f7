"""The results of steps, computed from their tasks' results: the values that bodies must get."""

from __future__ import annotations

from taskqueue.core.workflow_states import StepKind, StepStatus, WorkflowStatus
from tests.chaos.checker.graphs import Graphs
from tests.chaos.workflow_rows import MemberRow, StepRow, WorkflowRow


class Values:
    """The results of the steps and members of a history."""

    def __init__(self, graphs: Graphs) -> None:
        self._graphs = graphs

    def of_step(self, step: StepRow) -> object:
        """The result of a step; None if it did not succeed."""
        if step.status != StepStatus.SUCCEEDED:
            return None
        if step.kind == StepKind.WORKFLOW:
            return self._of_child(self._graphs.children_of[step.id][-1])
        values: dict[int, object] = {
            member.place: self._of_member(step, member)
            for member in self._graphs.members.get(step.id, [])
        }
        for child in self._graphs.children_of.get(step.id, []):
            values[child.parent_place or 0] = self._of_child(child)
        in_order = [values[place] for place in sorted(values)]
        return in_order if step.kind == StepKind.MAP else in_order[0]

    def of_given(self, member: MemberRow) -> object:
        """What a call is given of the first step of its workflow, or of the one around that."""
        step = self._graphs.steps[member.step_id]
        while True:
            own = self._graphs.steps_of[step.workflow_id]
            first = next((each for each in own if each.name == "first"), None)
            if first is not None:
                return self.of_step(first)
            step = self._graphs.steps[self._graphs.parent_of[step.workflow_id]]

    def _of_member(self, step: StepRow, member: MemberRow) -> object:
        """The result of a task, or of the calls that it returned."""
        if member.status != "succeeded":
            return None
        for fan in self._graphs.fans_of.get(step.id, []):
            if fan.parent_place == member.place:
                return self.of_step(fan)
        return member.return_value

    def _of_child(self, row: WorkflowRow) -> object:
        if row.status != WorkflowStatus.SUCCEEDED:
            return None
        steps = {step.name: step for step in self._graphs.steps_of[row.id]}
        values = {name: self.of_step(steps[name]) for name in row.last}
        return next(iter(values.values())) if len(values) == 1 else values
