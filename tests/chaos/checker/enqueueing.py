"""Invariants 1, 2 and 17: exactly the enqueued tasks exist, and they end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.chaos.checker.evidence import Evidence, Violation, is_finished
from tests.chaos.history import Enqueue


def nothing_is_lost(evidence: Evidence) -> Iterator[Violation]:
    """1: a task whose enqueue committed exists, and ends or was pruned after its end."""
    for enqueue in evidence.history.enqueues:
        if enqueue.state != "ok" or not enqueue.created:
            continue
        for task_id in enqueue.task_ids:
            if task_id not in evidence.tasks and task_id not in evidence.pruned:
                yield Violation(1, "An enqueued task is not there.", task_id, str(enqueue))
    for task_id, status in evidence.pruned.items():
        if not is_finished(status):
            yield Violation(1, "A task was deleted before it ended.", task_id, status)
    if evidence.history.is_over:
        for task in evidence.tasks.values():
            if not is_finished(task.status):
                yield Violation(1, "A task did not end.", task.id, str(task))
    yield from _halves(evidence)


def _halves(evidence: Evidence) -> Iterator[Violation]:
    """An enqueue of many is one transaction; where rows were pruned, they can't be counted."""
    if evidence.pruned:
        return
    there = Counter(task.sequence for task in evidence.tasks.values() if task.retry_of is None)
    for enqueue in evidence.unanswered:
        if not enqueue.unique_key and there[enqueue.sequence] not in (0, enqueue.count):
            found = f"{there[enqueue.sequence]} of {enqueue.count} tasks"
            yield Violation(1, "An enqueue happened in part.", "", f"{found}: {enqueue}")


def only_what_was_enqueued_runs(evidence: Evidence) -> Iterator[Violation]:
    """2: what runs was enqueued: a rolled-back enqueue never runs."""
    by_sequence = {enqueue.sequence: enqueue for enqueue in evidence.history.enqueues}
    for task in evidence.tasks.values():
        if task.sequence is None or not by_sequence or task.retry_of is not None:
            continue
        objection = _objection(task.id, by_sequence.get(task.sequence))
        if objection:
            yield Violation(2, objection, task.id, str(task))
    known = evidence.tasks.keys() | evidence.task_changes.keys()
    for what, owners in (
        ("A body wrote to the database", evidence.effects.keys()),
        ("A body wrote to the journal", evidence.lines.keys()),
        ("A lease is held", evidence.leases.keys()),
    ):
        for task_id in owners - known:
            yield Violation(2, f"{what} for a task that never was.", task_id)


def _objection(task_id: str, enqueue: Enqueue | None) -> str:
    if enqueue is None:
        return "Nobody asked for a task."
    if enqueue.state == "failed":
        return "A task is there although its enqueue was rolled back."
    if enqueue.state == "ok" and enqueue.created and task_id not in enqueue.task_ids:
        return "An enqueue made another task than it answered."
    if enqueue.state == "ok" and not enqueue.created:
        return "An enqueue made a task although it answered that there was one."
    return ""


def counts_add_up(evidence: Evidence) -> Iterator[Violation]:
    """17: counts by status plus pruned are what was enqueued, in one snapshot."""
    for sample in evidence.history.samples:
        total = sum(sample.counts.values()) + sample.pruned
        if total != sample.enqueued:
            details = f"{total} are not {sample.enqueued}: {sample}"
            yield Violation(17, "Counts do not add up to what was enqueued.", "", details)
    if not evidence.history.has_changes:
        return
    made = [id for id, changes in evidence.task_changes.items() if not changes[0].before]
    there = len(evidence.tasks) + sum(map(is_finished, evidence.pruned.values()))
    if len(made) != there:
        details = f"{len(made)} were made, {there} are there or were pruned after their end."
        yield Violation(17, "Counts do not add up to what was enqueued.", "", details)
