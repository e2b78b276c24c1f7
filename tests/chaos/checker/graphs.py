"""The rows of workflows, grouped by subject."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from tests.chaos.checker.evidence import Evidence, Violation
from tests.chaos.workflow_rows import EdgeRow, MemberRow, StepRow, WorkflowRow


class Graphs:
    """Looks up the steps, tasks and dependencies of a history."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.history = evidence.history
        self._needed: dict[int, frozenset[str]] = {}

    @cached_property
    def steps(self) -> dict[int, StepRow]:
        """The steps by id."""
        return {step.id: step for step in self.history.steps}

    @cached_property
    def members(self) -> dict[int, list[MemberRow]]:
        """The tasks of each step."""
        found: dict[int, list[MemberRow]] = defaultdict(list)
        for member in self.history.members:
            found[member.step_id].append(member)
        return dict(found)

    @cached_property
    def edges_to(self) -> dict[int, list[EdgeRow]]:
        """What each step depends on."""
        found: dict[int, list[EdgeRow]] = defaultdict(list)
        for edge in self.history.edges:
            found[edge.downstream_id].append(edge)
        return dict(found)

    @cached_property
    def steps_of(self) -> dict[str, list[StepRow]]:
        """The steps of each workflow."""
        found: dict[str, list[StepRow]] = defaultdict(list)
        for step in self.history.steps:
            found[step.workflow_id].append(step)
        return dict(found)

    @cached_property
    def children_of(self) -> dict[int, list[WorkflowRow]]:
        """The workflows that a step runs: one, or as many as members of it are workflows."""
        found: dict[int, list[WorkflowRow]] = defaultdict(list)
        for row in self.history.workflows:
            if row.parent_step_id is not None:
                found[row.parent_step_id].append(row)
        return dict(found)

    @cached_property
    def parent_of(self) -> dict[str, int]:
        """The step that runs a workflow as a child."""
        rows = self.history.workflows
        return {row.id: row.parent_step_id for row in rows if row.parent_step_id is not None}

    @cached_property
    def fans_of(self) -> dict[int, list[StepRow]]:
        """The fan-outs that members of a step returned."""
        found: dict[int, list[StepRow]] = defaultdict(list)
        for step in self.history.steps:
            if step.parent_step_id is not None:
                found[step.parent_step_id].append(step)
        return dict(found)

    @cached_property
    def task_at(self) -> dict[tuple[int, int], str]:
        """The task of each place."""
        members = self.history.members
        return {(member.step_id, member.place): member.task_id for member in members}

    def needed(self, step_id: int) -> frozenset[str]:
        """The tasks that have ended before one of the step starts; those behind joins too."""
        if step_id not in self._needed:
            step = self.steps.get(step_id)
            parent_id, place = (step.parent_step_id, step.parent_place) if step else (None, None)
            found: set[str] = set()
            if parent_id is not None and place is not None:
                found = {self.task_at[parent_id, place], *self.needed(parent_id)}
            if step is not None and (above := self.parent_of.get(step.workflow_id)) is not None:
                found |= self.needed(above)
            for edge in self.edges_to.get(step_id, []):
                own = self._tasks(edge.upstream_id)
                found |= own or self.needed(edge.upstream_id)
            self._needed[step_id] = frozenset(found)
        return self._needed[step_id]

    def members_of(self, workflow_id: str) -> Iterator[MemberRow]:
        """The tasks of a workflow's own steps, without those of compensations."""
        for step in self.steps_of.get(workflow_id, []):
            if step.compensates_id is None:
                yield from self.members.get(step.id, [])

    def behind(self, step_id: int) -> set[int]:
        """The steps that a step depends on, at whatever distance, and itself."""
        found, ahead = {step_id}, [step_id]
        while ahead:
            ids = {edge.upstream_id for edge in self.edges_to.get(ahead.pop(), [])} - found
            found |= ids
            ahead += ids
        return found

    def tasks_in(self, workflow_id: str) -> set[str]:
        """The tasks of a workflow, with those of its children."""
        return set().union(*(self._tasks(step.id) for step in self.steps_of.get(workflow_id, [])))

    def violation(self, step_id: int, sentence: str, details: str, task_id: str = "") -> Violation:
        """What is wrong with a step."""
        step = self.steps.get(step_id)
        about = f"step {step.name if step else step_id}"
        return Violation(12, sentence, task_id, f"{about}: {details}")

    def _tasks(self, step_id: int) -> set[str]:
        own = {member.task_id for member in self.members.get(step_id, [])}
        below = [*self.fans_of.get(step_id, [])]
        for child in self.children_of.get(step_id, []):
            below += self.steps_of.get(child.id, [])
        return own.union(*(self._tasks(step.id) for step in below))
