"""Invariant 12: steps run once, after all that they depend on, and ends are counted once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property

from taskqueue.core.workflow_states import (
    FINAL_STEPS,
    FINAL_WORKFLOWS,
    After,
    OnFailure,
    StepKind,
    StepStatus,
)
from taskqueue.declarations.workflows.graph import Edge
from tests.chaos.checker.evidence import Evidence, Violation, is_finished
from tests.chaos.workflow_rows import EdgeRow, MemberRow, StepRow
from tests.workflows.model import fate

RAN = {StepStatus.SUCCEEDED, StepStatus.FAILED}


def workflows_follow_their_graphs(evidence: Evidence) -> Iterator[Violation]:
    """12: nothing of a workflow runs early, twice or never, and its counts hold."""
    graphs = Graphs(evidence)
    yield from _places_sent_twice(graphs)
    yield from _early_attempts(graphs)
    if evidence.history.is_over:
        yield from _unended(graphs)
        yield from _wrong_counts(graphs)
        yield from _wrong_fates(graphs)


class Graphs:
    """The rows of workflows by what they are about."""

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
    def child_of(self) -> dict[int, str]:
        """The workflow that a step runs."""
        rows = self.history.workflows
        return {row.parent_step_id: row.id for row in rows if row.parent_step_id is not None}

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
            for edge in self.edges_to.get(step_id, []):
                own = self._tasks(edge.upstream_id)
                found |= own or self.needed(edge.upstream_id)
            self._needed[step_id] = frozenset(found)
        return self._needed[step_id]

    def _tasks(self, step_id: int) -> set[str]:
        if step_id in self.child_of:
            inner = self.steps_of.get(self.child_of[step_id], [])
            return set().union(*(self._tasks(step.id) for step in inner))
        own = {member.task_id for member in self.members.get(step_id, [])}
        return own.union(*(self._tasks(fan.id) for fan in self.fans_of.get(step_id, [])))


def _places_sent_twice(graphs: Graphs) -> Iterator[Violation]:
    sent = Counter((member.step_id, member.place) for member in graphs.history.members)
    for (step_id, place), number in sent.items():
        if number > 1:
            yield _violation(graphs, step_id, "A place has several tasks.", f"{place}: {number}")


def _early_attempts(graphs: Graphs) -> Iterator[Violation]:
    """By the order of the changes, which is that of locks: an end is there before a release."""
    ends = {
        task_id: [(change.number, is_finished(change.after)) for change in changes if change.after]
        for task_id, changes in graphs.evidence.task_changes.items()
    }
    for step_id, members in graphs.members.items():
        needed = graphs.needed(step_id)
        for member in members:
            changes = graphs.evidence.lease_changes.get(member.task_id, [])
            claims = [change.number for change in changes if not change.before]
            for task_id in needed if claims else ():
                if not all(_had_ended(ends.get(task_id, []), claim) for claim in claims):
                    sentence = "A step ran before what it depends on had ended."
                    yield _violation(graphs, step_id, sentence, f"before {task_id}", member.task_id)
                    break


def _had_ended(ends: list[tuple[int, bool]], number: int) -> bool:
    before = [has_ended for at, has_ended in ends if at < number]
    return bool(before) and before[-1]


def _unended(graphs: Graphs) -> Iterator[Violation]:
    for row in graphs.history.workflows:
        if row.status not in FINAL_WORKFLOWS:
            yield Violation(12, "A workflow did not end.", "", str(row))
        if row.trouble:
            yield Violation(12, "A workflow is in trouble.", "", str(row))
        open_steps = [s for s in graphs.steps_of.get(row.id, []) if s.status not in FINAL_STEPS]
        if len(open_steps) != row.open_steps:
            details = f"{len(open_steps)} steps are open: {row}"
            yield Violation(12, "A workflow miscounts its open steps.", "", details)
    for note in graphs.history.notes:
        yield _violation(graphs, note.step_id, "An end was not counted.", str(note))


def _wrong_counts(graphs: Graphs) -> Iterator[Violation]:
    for step in graphs.history.steps:
        if step.kind not in (StepKind.TASK, StepKind.MAP) or step.status not in FINAL_STEPS:
            continue
        ended = [member for member in graphs.members.get(step.id, []) if is_finished(member.status)]
        failures = sum(member.status != "succeeded" for member in ended)
        failures += sum(fan.status != "succeeded" for fan in graphs.fans_of.get(step.id, []))
        if (step.ended, step.failures) != (len(ended), failures):
            details = f"{len(ended)} tasks have ended, {failures} of them badly: {step}"
            yield _violation(graphs, step.id, "A step miscounts its members.", details)
        if step.status == StepStatus.SUCCEEDED and step.ended != step.members:
            yield _violation(graphs, step.id, "A step succeeded without all members.", str(step))


def _wrong_fates(graphs: Graphs) -> Iterator[Violation]:
    """Compare how steps ended with what the rules say, where nobody stopped the workflow."""
    stopped = {row.id for row in graphs.history.workflows if row.was_stopped}
    for step in graphs.history.steps:
        if step.workflow_id in stopped or step.status not in FINAL_STEPS:
            continue
        edges = graphs.edges_to.get(step.id, [])
        ends = {str(edge.upstream_id): _end_of(graphs, edge) for edge in edges}
        forgiven = {
            str(edge.upstream_id)
            for edge in edges
            if graphs.steps[edge.upstream_id].on_failure == OnFailure.CONTINUE
        }
        expected = fate([_named(edge) for edge in edges], ends, forgiven)
        allowed = {expected}
        if expected is StepStatus.RUNNING:
            allowed = RAN | ({StepStatus.SKIPPED} if step.has_condition else set())
        if step.status not in allowed:
            details = f"not {', '.join(sorted(allowed))}: {step} after {ends}"
            yield _violation(graphs, step.id, "A step ended against the rules.", details)


def _end_of(graphs: Graphs, edge: EdgeRow) -> StepStatus:
    return StepStatus(graphs.steps[edge.upstream_id].status)


def _named(edge: EdgeRow) -> Edge:
    when = After(edge.when)
    return Edge(upstream=str(edge.upstream_id), downstream=str(edge.downstream_id), when=when)


def _violation(
    graphs: Graphs, step_id: int, sentence: str, details: str, task_id: str = ""
) -> Violation:
    step = graphs.steps.get(step_id)
    about = f"step {step.name if step else step_id}"
    return Violation(12, sentence, task_id, f"{about}: {details}")
