"""Invariant 12, for the limits of steps: no more members run at once than a step allows."""

from __future__ import annotations

import sys
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
        tasks = graphs.tasks_in(child.id)
        sent = sorted(change.number for id in tasks for change in _sent(evidence, id))
        moves += _moves_of_child(evidence.workflow_changes.get(child.id, []), sent)
    under_way = most = 0
    for _, move in sorted(moves):
        under_way += move
        most = max(most, under_way)
    return most


def _sent(evidence: Evidence, task_id: str) -> Iterator[Change]:
    return (change for change in evidence.task_changes.get(task_id, []) if _is_sent(change))


def _is_sent(change: Change) -> bool:
    return change.after not in ("", "blocked") and not is_finished(change.after)


def _moves_of_child(changes: list[Change], sent: list[int]) -> Iterator[tuple[int, int]]:
    """When a workflow was under way: from its first task on, which may never be sent.

    One that a retry was to run again, and that is cancelled first, begins and ends at once.
    """
    for begun, ended in _spans(changes):
        number = next((each for each in sent if begun < each < ended), None)
        if number is not None:
            yield number, 1
            yield ended, -1


def _spans(changes: list[Change]) -> Iterator[tuple[int, int]]:
    """The numbers between which a workflow ran; the last may run on."""
    begun = None
    for change in changes:
        if change.after in FINAL_WORKFLOWS:
            if begun is not None:
                yield begun, change.number
            begun = None
        elif begun is None:
            begun = change.number
    if begun is not None:
        yield begun, sys.maxsize


def _moves(changes: list[Change]) -> Iterator[tuple[int, int]]:
    """When one more member was under way, and when one less."""
    was_sent = False
    for change in changes:
        is_sent = _is_sent(change)
        if is_sent != was_sent:
            yield change.number, 1 if is_sent else -1
        was_sent = is_sent
