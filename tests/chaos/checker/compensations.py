"""Invariant 12, for compensations: each success is undone once, one at a time, last ended first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from taskqueue.core.workflow_states import StepKind, StepStatus, WorkflowStatus
from tests.chaos.checker.evidence import Evidence, Violation, is_finished
from tests.chaos.checker.graphs import Graphs
from tests.chaos.workflow_rows import RESOLVED, StepRow, WorkflowRow


def successes_are_undone_once(evidence: Evidence) -> Iterator[Violation]:
    """12: of a workflow that did not succeed, and of no other, what succeeded is undone."""
    if not evidence.history.is_over:
        return
    graphs = Graphs(evidence)
    for row in evidence.history.workflows:
        steps = graphs.steps_of.get(row.id, [])
        undoing = sorted(step for step in steps if step.compensates_id is not None)
        yield from _wrong_set(row, steps, undoing)
        yield from _wrong_order(graphs, undoing)
        for step in undoing:
            yield from _wrong_value(graphs, step)


def _wrong_set(
    row: WorkflowRow, steps: list[StepRow], undoing: list[StepRow]
) -> Iterator[Violation]:
    done = [
        step.id for step in steps if step.has_compensation and step.status == StepStatus.SUCCEEDED
    ]
    expected = [] if row.status == WorkflowStatus.SUCCEEDED else sorted(done)
    found = sorted(step.compensates_id or 0 for step in undoing)
    if found != expected:
        details = f"{found}, not {expected}: {row}"
        yield Violation(12, "What succeeded was not undone once.", "", details)


def _wrong_order(graphs: Graphs, undoing: list[StepRow]) -> Iterator[Violation]:
    """In the order in which they were made; each once nothing else of the workflow runs."""
    changes = graphs.evidence.task_changes
    undone = [graphs.steps[step.compensates_id or 0] for step in undoing]
    for before, after in pairwise(undone):
        if (after.finished_at or 0.0) > (before.finished_at or 0.0):
            details = f"{before.name} before {after.name}"
            yield graphs.violation(after.id, "Steps were undone in another order.", details)
    for place, step in enumerate(undoing):
        begun = [
            each.number
            for member in graphs.members.get(step.id, [])
            for each in changes.get(member.task_id, [])
            if not each.before
        ]
        earlier = [*graphs.members_of(step.workflow_id)]
        for each in undoing[:place]:
            earlier += graphs.members.get(each.id, [])
        for member in earlier if begun else ():
            own = [each for each in changes.get(member.task_id, []) if each.number < begun[0]]
            if not own or not is_finished(own[-1].after):
                sentence = "A step was undone while the workflow ran."
                yield graphs.violation(step.id, sentence, f"before {member.task_id}")
                break


def _wrong_value(graphs: Graphs, step: StepRow) -> Iterator[Violation]:
    """Compensations return what they were given: the result of the step."""
    undone = graphs.steps[step.compensates_id or 0]
    members = sorted(graphs.members.get(undone.id, []), key=lambda member: member.place)
    values = [member.return_value for member in members]
    expected = values if undone.kind == StepKind.MAP else values[0] if values else None
    for member in graphs.members.get(step.id, []):
        is_right = member.return_value in (expected, RESOLVED)
        if member.status == "succeeded" and not is_right:
            details = f"{member.return_value}, not {expected}"
            sentence = "A step was undone with another result."
            yield graphs.violation(step.id, sentence, details, member.task_id)
