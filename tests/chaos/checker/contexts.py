"""Invariant 12, for contexts: they have what successful attempts set, in the order of their ends.

Some bodies leave a mark of each of their attempts in the context, and all of these set one key to
their mark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tests.chaos.checker.evidence import Evidence, Violation
from tests.chaos.checker.graphs import Graphs
from tests.chaos.workflow_rows import WorkflowRow

BODIES = "tests.chaos.workflow_bodies"
TELLING = {f"{BODIES}.{name}" for name in ("spread", "spread_late", "tell")}
"""These leave a mark in the context in each of their attempts."""
LAST = "last"
"""The key that all set to their mark."""


class Mark(NamedTuple):
    """An attempt that succeeded and left a mark; numbers are those of changes."""

    text: str
    step_id: int
    task_id: str
    claimed: int
    ended: int


def contexts_are_folds(evidence: Evidence) -> Iterator[Violation]:
    """12: a context is the fold of the updates of attempts that succeeded."""
    graphs = Graphs(evidence)
    marks = _marks(graphs)
    for row in graphs.history.workflows:
        own = marks.get(row.id, [])
        yield from _wrong_values(graphs, own)
        if own and evidence.history.is_over:
            yield from _wrong_context(graphs, row, own)


def _marks(graphs: Graphs) -> dict[str, list[Mark]]:
    """The marks that must be in the context of each workflow."""
    found: dict[str, list[Mark]] = defaultdict(list)
    for member in graphs.history.members:
        task = graphs.evidence.tasks.get(member.task_id)
        step = graphs.steps.get(member.step_id)
        if task is None or step is None or task.name not in TELLING:
            continue
        found.setdefault(step.workflow_id, [])
        changes = graphs.evidence.lease_changes.get(task.id, [])
        claims = {each.attempt: each.number for each in changes if not each.before}
        ends = {each.attempt: each.number for each in changes if each.after == "succeeded"}
        for attempt, end in ends.items():
            text = f"{step.name}/{member.place}/{attempt}"
            found[step.workflow_id].append(Mark(text, step.id, task.id, claims[attempt], end))
    return found


def _wrong_context(graphs: Graphs, row: WorkflowRow, own: list[Mark]) -> Iterator[Violation]:
    expected = {mark.text for mark in own}
    found = row.context.keys() - {LAST}
    if graphs.evidence.reopened[row.id]:
        # A retry deletes the fan-outs and the unlike members of what it runs anew; what they set
        # stays, and new ones have the same names.
        lasting = (
            step
            for step in graphs.steps_of[row.id]
            if step.parent_step_id is None and not step.is_unlike
        )
        names = {step.name for step in lasting}
        found = {text for text in found if text in expected or text.split("/")[0] in names}
    if found != expected:
        more, less = sorted(found - expected)[:5], sorted(expected - found)[:5]
        details = f"too many: {more}, missing: {less}, of {row.name} {row.id}"
        yield Violation(12, "A context is not what successful attempts set.", "", details)
    last = row.context.get(LAST)
    if overwritten := _overwritten(graphs, str(last), own, own):
        details = f"{last} came before {overwritten}: {row.name} {row.id}"
        yield Violation(12, "A context was not set in the order of ends.", "", details)


def _wrong_values(graphs: Graphs, own: list[Mark]) -> Iterator[Violation]:
    """Bodies return which mark they found: none that a step before them has overwritten."""
    last_of = {mark.task_id: mark for mark in own}
    for step_id in {mark.step_id for mark in own}:
        for member in graphs.members.get(step_id, []):
            value = member.return_value
            mark = last_of.get(member.task_id)
            if mark is None or not (isinstance(value, list) and value[:1] == ["found"]):
                continue
            needed = graphs.needed(step_id)
            before = [each for each in own if each.task_id in needed and each.ended < mark.claimed]
            seen = str(value[1])
            if before and (value[1] is None or _overwritten(graphs, seen, own, before)):
                details = f"{mark.text} found {seen}"
                sentence = "A body did not find what a step before it had set."
                yield graphs.violation(step_id, sentence, details, member.task_id)


def _overwritten(graphs: Graphs, text: str, own: Iterable[Mark], later: Iterable[Mark]) -> str:
    """The text of a mark that has surely replaced this one: its step waits for the other's."""
    mark = next((mark for mark in own if mark.text == text), None)
    for each in later if mark else ():
        assert mark is not None
        if mark.task_id in graphs.needed(each.step_id) and mark.ended < each.claimed:
            return each.text
    return ""
