"""Invariant 12, of what bodies find: calls and updates count with the attempt that succeeded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.checker.evidence import Evidence, Violation
from tests.chaos.checker.workflows import Graphs

BODIES = "tests.chaos.workflow_bodies"
TELLING = {f"{BODIES}.spread", f"{BODIES}.spread_late"}
"""These tell the context of each of their attempts."""


def what_bodies_find_counts_once(evidence: Evidence) -> Iterator[Violation]:
    """12: calls and updates of an attempt count if it has succeeded, and no others do."""
    graphs = Graphs(evidence)
    yield from _strange_calls(graphs)
    if evidence.history.is_over:
        yield from _wrong_contexts(graphs)


def _strange_calls(graphs: Graphs) -> Iterator[Violation]:
    """Leaves tell by which attempt of the member above them they were made."""
    for step in graphs.history.steps:
        if step.parent_step_id is None or step.parent_place is None:
            continue
        above = graphs.task_at[step.parent_step_id, step.parent_place]
        attempt = _attempt(graphs.evidence, above)
        for member in graphs.members.get(step.id, []):
            value = member.return_value
            is_leaf = isinstance(value, list) and len(value) == 2 and isinstance(value[1], int)
            if is_leaf and value[1] != attempt:  # type: ignore[index]
                details = f"attempt {attempt} of {above} succeeded: {value}"
                sentence = "A call ran that no successful attempt returned."
                yield Violation(12, sentence, member.task_id, details)


def _wrong_contexts(graphs: Graphs) -> Iterator[Violation]:
    expected: dict[str, set[str]] = defaultdict(set)
    for member in graphs.history.members:
        task = graphs.evidence.tasks.get(member.task_id)
        step = graphs.steps.get(member.step_id)
        if task is None or step is None or task.name not in TELLING:
            continue
        attempt = _attempt(graphs.evidence, member.task_id)
        told = expected[step.workflow_id]
        if attempt is not None:
            told.add(f"{step.name}/{member.place}/{attempt}")
    for row in graphs.history.workflows:
        if row.id in expected and set(row.context) != expected[row.id]:
            strange = sorted(set(row.context) ^ expected[row.id])
            details = f"{strange[:5]} of {row.name} {row.id}"
            yield Violation(12, "A context is not what successful attempts set.", "", details)


def _attempt(evidence: Evidence, task_id: str) -> int | None:
    """The number of the attempt that succeeded."""
    leases = evidence.leases.get(task_id, [])
    return next((lease.attempt for lease in leases if lease.status == "succeeded"), None)
