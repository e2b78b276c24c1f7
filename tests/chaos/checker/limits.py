"""Invariant 12, of the limits of steps: no more members at once than a step allows."""

from __future__ import annotations

from collections.abc import Iterator

from taskqueue.core.workflow_states import FINAL_WORKFLOWS
from tests.chaos.checker.evidence import Evidence, Violation, is_finished
from tests.chaos.checker.graphs import Graphs
from tests.chaos.history import Change
from tests.chaos.workflow_rows import StepRow


def members_keep_to_limits(evidence: Evidence) -> Iterator[Violation]:
    """12: of a step with limits no more tasks and workflows are under way than it allows.

    Those that a retry made anew are counted, those that it deleted are not known any more.
    """
    graphs = Graphs(evidence)
    for step in evidence.history.steps:
        if step.concurrency is not None:
            most = _most_at_once(graphs, step)
            if most > step.concurrency:
                details = f"{most} at once, not {step.concurrency}: {step}"
                yield graphs.violation(step.id, "A step ran too many members at once.", details)


def _most_at_once(graphs: Graphs, step: StepRow) -> int:
    evidence = graphs.evidence
    moves: list[tuple[int, int]] = []
    for member in graphs.members.get(step.id, []):
        moves += _moves(evidence.task_changes.get(member.task_id, []))
    for child in graphs.children_of.get(step.id, []):
        moves += _moves(evidence.workflow_changes.get(child.id, []))
    under_way = most = 0
    for _, move in sorted(moves):
        under_way += move
        most = max(most, under_way)
    return most


def _moves(changes: list[Change]) -> Iterator[tuple[int, int]]:
    """When one more member was under way, and when one less."""
    was_sent = False
    for change in changes:
        has_ended = is_finished(change.after) or change.after in FINAL_WORKFLOWS
        is_sent = not has_ended and change.after not in ("", "blocked")
        if is_sent != was_sent:
            yield change.number, 1 if is_sent else -1
        was_sent = is_sent
