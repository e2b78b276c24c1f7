"""Invariant 12, for fan-outs: only the calls of the attempt that succeeded count."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.evidence import Evidence, Violation
from tests.chaos.checker.graphs import Graphs


def calls_count_once(evidence: Evidence) -> Iterator[Violation]:
    """12: calls of an attempt run if it has succeeded, and no others do.

    Leaves tell by which attempt of the member above them they were made.
    """
    graphs = Graphs(evidence)
    for step in graphs.history.steps:
        if step.parent_step_id is None or step.parent_place is None:
            continue
        above = graphs.task_at[step.parent_step_id, step.parent_place]
        leases = evidence.leases.get(above, [])
        succeeded = [lease.attempt for lease in leases if lease.status == "succeeded"]
        for member in graphs.members.get(step.id, []):
            value = member.return_value
            is_leaf = isinstance(value, list) and len(value) == 2 and isinstance(value[1], int)
            if is_leaf and value[1:] != succeeded[-1:]:  # type: ignore[index]
                details = f"attempts {succeeded} of {above} succeeded: {value}"
                sentence = "A call ran that no successful attempt returned."
                yield Violation(12, sentence, member.task_id, details)
