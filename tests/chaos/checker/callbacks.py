"""Invariant 12, for the end of workflows: one callback for each end, and results in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from taskqueue.core.workflow_states import FINAL_WORKFLOWS
from tests.chaos.checker.evidence import Evidence, Violation, is_finished
from tests.chaos.checker.graphs import Graphs
from tests.chaos.checker.results import Values
from tests.chaos.mixture_bodies import given
from tests.chaos.workflow_bodies import DEPTH, gathered, names_of, together
from tests.chaos.workflow_rows import RESOLVED, WorkflowRow


def callbacks_are_called_once(evidence: Evidence) -> Iterator[Violation]:
    """12: each end of a workflow calls its callback once, after all members' ends."""
    graphs = Graphs(evidence)
    rows = {row.callback: row for row in evidence.history.workflows if row.callback}
    # A retry makes children anew, with the callbacks of those that it deletes.
    own = [
        callback
        for callback in evidence.history.callbacks
        if callback.key in rows
        and evidence.task_changes[callback.task_id][0].at >= rows[callback.key].created_at
    ]
    counts = Counter(callback.key for callback in own)
    for key, row in rows.items():
        changes = evidence.workflow_changes.get(row.id, [])
        ends = sum(change.after in FINAL_WORKFLOWS for change in changes)
        if counts[key] != ends:
            details = f"{counts[key]} times for {ends} ends: {row}"
            yield Violation(12, "A callback was not called once for each end.", "", details)
    for callback in own:
        yield from _early(graphs, rows[callback.key], callback.task_id)
    yield from _wrong_results(graphs)


def _early(graphs: Graphs, row: WorkflowRow, task_id: str) -> Iterator[Violation]:
    changes = graphs.evidence.task_changes
    called = next((each.number for each in changes.get(task_id, [])), 0)
    for member in graphs.members_of(row.id):
        before = [each for each in changes.get(member.task_id, []) if each.number < called]
        if before and not is_finished(before[-1].after):
            sentence = "A callback was called before a member had ended."
            yield graphs.violation(member.step_id, sentence, f"before {member.task_id}", task_id)


def _wrong_results(graphs: Graphs) -> Iterator[Violation]:
    """The ends of chords, groups and trees return what they were given."""
    values = Values(graphs)
    for member in graphs.history.members:
        task = graphs.evidence.tasks.get(member.task_id)
        if task is None or member.status != "succeeded":
            continue
        if task.name == together.name:
            (edge,) = graphs.edges_to[member.step_id]
            expected = values.of_step(graphs.steps[edge.upstream_id])
        elif task.name == gathered.name:
            expected = names_of(DEPTH)
        elif task.name == given.name:
            expected = values.of_given(member)
        else:
            continue
        if member.return_value not in (expected, RESOLVED):
            details = f"{member.return_value}, not {expected}"
            sentence = "A callback was not given all results in order."
            yield graphs.violation(member.step_id, sentence, details, member.task_id)
