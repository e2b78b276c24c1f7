"""Invariants 3, 4 and 5: who holds a task, and who may write to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.checker.evidence import (
    ENDED_BY_HAND,
    ENDED_ON_HOST,
    EXPIRED,
    Evidence,
    Violation,
    is_finished,
)
from tests.chaos.history import Change, LeaseRow


def ownership_does_not_overlap(evidence: Evidence) -> Iterator[Violation]:
    """3: a task with one worker has one owner at a time, with rising numbers."""
    for task_id, leases in evidence.leases.items():
        if not any(lease.is_shared for lease in leases):
            yield from _overlaps(evidence, task_id, leases)
            yield from _two_at_once(task_id, evidence.lease_changes.get(task_id, []))
    for task in evidence.tasks.values():
        attempts = [lease.attempt for lease in evidence.leases.get(task.id, [])]
        if task.attempt != max(attempts, default=0):
            details = f"The task says {task.attempt}, its leases {attempts}."
            yield Violation(3, "A task's attempt is not that of its last lease.", task.id, details)
        elif attempts != list(range(1, len(attempts) + 1)):
            yield Violation(3, "Attempts do not rise one by one.", task.id, str(attempts))
    yield from _bodies_overlap(evidence)


def _overlaps(evidence: Evidence, task_id: str, leases: list[LeaseRow]) -> Iterator[Violation]:
    for before, after in pairwise(leases):
        ended = before.finished_at
        if ended is None or ended > after.claimed_at + evidence.bounds.clock:
            yield Violation(3, "Two leases overlap in time.", task_id, f"{before}, {after}")


def _two_at_once(task_id: str, changes: list[Change]) -> Iterator[Violation]:
    running: set[int] = set()
    for change in changes:
        if change.after == "running":
            running.add(change.attempt)
            if len(running) > 1:
                yield Violation(3, "Two leases ran at once.", task_id, str(sorted(running)))
                return
        else:
            running.discard(change.attempt)


def _bodies_overlap(evidence: Evidence) -> Iterator[Violation]:
    """The bodies' own marks tell the same: none writes once a later one has begun."""
    for task_id, lines in evidence.lines.items():
        starts = Counter(line.attempt for line in lines if line.text == "start")
        for attempt, count in starts.items():
            if count > 1:
                yield Violation(3, "One attempt ran twice.", task_id, f"attempt {attempt}")
        leases = evidence.leases.get(task_id, [])
        # Of a member that a retry has deleted nobody can tell whether several workers were to run
        # it.
        is_known = bool(leases) or task_id in evidence.enqueue_of
        if not is_known or any(lease.is_shared for lease in leases):
            continue
        for before, after in pairwise(lines):
            if after.attempt < before.attempt:
                details = f"{after} came after {before}"
                yield Violation(3, "Two bodies of one task ran at once.", task_id, details)
                break


def takeovers_follow_expiry(evidence: Evidence) -> Iterator[Violation]:
    """4: a takeover needs a lease that had expired, a worker that had ended, or a person."""
    for lease in taken_over(evidence):
        at = _lost_at(evidence, lease)
        if at is None or at + evidence.bounds.clock < lease.expires_at:
            early = "" if at is None else f"{lease.expires_at - at:.3f} s early: "
            details = f"{early}{lease}"
            yield Violation(4, "A lease was taken over before it ran out.", lease.task_id, details)
    yield from _early_ends_without_reason(evidence)


def _lost_at(evidence: Evidence, lease: LeaseRow) -> float | None:
    """When it was recorded as lost, by the triggers where there were any."""
    changes = evidence.lease_changes.get(lease.task_id, [])
    ends = [each.at for each in changes if each.after == "lost" and each.attempt == lease.attempt]
    return ends[0] if ends else lease.finished_at


def _early_ends_without_reason(evidence: Evidence) -> Iterator[Violation]:
    for lease in evidence.history.leases:
        at = _lost_at(evidence, lease)
        if lease.status != "lost" or at is None:
            continue
        if lease.error_message.startswith(ENDED_ON_HOST) and not _had_ended(evidence, lease, at):
            sentence = "A worker was taken for dead that nobody had ended."
            yield Violation(4, sentence, lease.task_id, str(lease))
        if lease.error_message.startswith(ENDED_BY_HAND) and not _was_ordered(evidence, lease, at):
            sentence = "A lease was ended by hand, and no audit says by whom."
            yield Violation(4, sentence, lease.task_id, str(lease))


def _had_ended(evidence: Evidence, lease: LeaseRow, at: float) -> bool:
    """Whether the harness knows that the worker was killed, or had exited, by then."""
    name = lease.worker_name
    ends = [death.at for death in evidence.history.deaths if death.worker_name == name]
    ends += [
        term.exited_at
        for term in evidence.history.terms
        if term.worker_name == name and term.exited_at is not None
    ]
    return any(lease.claimed_at - evidence.bounds.slack <= end <= at for end in ends)


def _was_ordered(evidence: Evidence, lease: LeaseRow, at: float) -> bool:
    """Whether somebody stopped or retried the task in the same transaction."""
    return any(
        audit.subject == lease.task_id
        and audit.verb in ("cancel", "stop", "retry")
        and abs(audit.at - at) <= evidence.bounds.slack
        for audit in evidence.history.audits
    )


def taken_over(evidence: Evidence) -> Iterator[LeaseRow]:
    """The leases that others ended because they ran out."""
    for leases in evidence.leases.values():
        for lease in leases:
            if lease.status == "lost" and lease.error_message.startswith(EXPIRED):
                yield lease


def ended_leases_write_nothing(evidence: Evidence) -> Iterator[Violation]:
    """5: a finish, retry, progress or log written under an ended lease changes no row."""
    for task_id, changes in evidence.lease_changes.items():
        for change in changes:
            if change.before not in ("", "running") and change.after:
                details = f"attempt {change.attempt} {change.before}, now {change.after}"
                yield Violation(5, "A lease changed after its end.", task_id, details)
    for task_id, changes in evidence.log_changes.items():
        for change in changes:
            details = f"attempt {change.attempt} of {change.worker_name} {change.before}"
            yield Violation(5, "A line was written after the attempt's end.", task_id, details)
    for task in evidence.tasks.values():
        if not task.is_shared:
            yield from _ends_without_lease(evidence, task.id)


_FOLLOWS = {
    "": {"ready"},
    "succeeded": {"succeeded"},
    "failed": {"failed", "retrying"},
    "lost": {"failed", "retrying", "ready", "cancelled"},
    "stopped": {"cancelled"},
    "returned": {"ready", "scheduled", "failed"},
}
"""What may become of a task when its lease ends so; a deleted lease leaves no trace."""


def _ends_without_lease(evidence: Evidence, task_id: str) -> Iterator[Violation]:
    """Each time that a task leaves `running` belongs to one end of a lease."""
    ends = [
        change
        for change in evidence.lease_changes.get(task_id, [])
        if change.before == "running" and change.after != "running"
    ]
    leaves = [
        change
        for change in evidence.task_changes.get(task_id, [])
        if change.before == "running" != change.after
    ]
    for end, leave in zip(ends, leaves, strict=False):
        if end.attempt != leave.attempt or leave.after not in _FOLLOWS[end.after]:
            details = f"{leave} by {end}"
            yield Violation(5, "A task was ended by another lease than its own.", task_id, details)
            return
    if len(leaves) != len(ends):
        details = f"{len(leaves)} ends of the task, {len(ends)} of its leases"
        yield Violation(5, "A task ended without the end of a lease.", task_id, details)
        return
    yield from _last_lease_disagrees(evidence, task_id)


def _last_lease_disagrees(evidence: Evidence, task_id: str) -> Iterator[Violation]:
    """The rows alone tell it too, where no triggers were."""
    task, leases = evidence.tasks[task_id], evidence.leases.get(task_id, [])
    last = leases[-1].status if leases else ""
    if (task.status == "succeeded") != (last == "succeeded") and task_id not in evidence.retried:
        details = f"The task is {task.status}, its last lease {last or 'absent'}."
        yield Violation(5, "A task ended otherwise than its last lease.", task_id, details)
    elif is_finished(task.status) and last == "running":
        yield Violation(5, "A task has ended while a lease runs.", task_id, task.status)
