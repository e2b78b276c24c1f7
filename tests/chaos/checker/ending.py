"""Invariants 6, 7, 9 and 14: how tasks end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from taskqueue.core.outcomes import may_follow
from taskqueue.core.states import PENDING, TaskStatus
from tests.chaos.checker.evidence import (
    ENDED_ON_HOST,
    EXPIRED,
    NO_CRASH,
    Evidence,
    Violation,
    is_finished,
)
from tests.chaos.history import LeaseRow, TaskRow

RETRY_LATER = "RetryLater"


def atomic_effects_commit_with_success(evidence: Evidence) -> Iterator[Violation]:
    """6: an atomic attempt that succeeded has exactly one effect, any other none."""
    for task_id, enqueue in evidence.enqueue_of.items():
        if not enqueue.is_atomic:
            continue
        effects = sorted(effect.attempt for effect in evidence.effects.get(task_id, []))
        successes = _successful_attempts(evidence, task_id)
        if successes is not None and effects != successes:
            details = f"effects of attempts {effects}, successes of {successes}"
            yield Violation(6, "Effects and successes differ.", task_id, details)


def _successful_attempts(evidence: Evidence, task_id: str) -> list[int] | None:
    if task_id in evidence.tasks:
        leases = evidence.leases.get(task_id, [])
        return [lease.attempt for lease in leases if lease.status == "succeeded"]
    if task_id not in evidence.lease_changes:
        return None
    changes = evidence.lease_changes[task_id]
    return sorted(change.attempt for change in changes if change.after == "succeeded")


def only_known_transitions(evidence: Evidence) -> Iterator[Violation]:
    """7: only transitions in the table happen, and only a retry by hand leaves an end."""
    for task_id, changes in evidence.task_changes.items():
        left_ends = 0
        for change in changes:
            if not change.before:
                if TaskStatus(change.after) not in PENDING:
                    yield Violation(7, "A task did not begin as waiting.", task_id, change.after)
            elif change.after and change.before != change.after:
                before, after = TaskStatus(change.before), TaskStatus(change.after)
                if not may_follow(before, after):
                    details = f"{change.before} to {change.after}"
                    yield Violation(7, "A transition is not in the table.", task_id, details)
                left_ends += is_finished(before)
        if left_ends > evidence.retried.get(task_id, 0):
            details = f"{left_ends} times, {evidence.retried.get(task_id, 0)} audited"
            yield Violation(7, "A task left its end without an audit.", task_id, details)


def starts_are_bounded(evidence: Evidence) -> Iterator[Violation]:
    """9: every start is a failure, a crash, or recorded as what else it was."""
    for task in evidence.tasks.values():
        leases = evidence.leases.get(task.id, [])
        counted = [lease for lease in leases if lease.attempt > task.attempts_before_retry]
        yield from _too_many(task, counted, evidence.retried.get(task.id, 0))
        if not task.is_shared and task.id not in evidence.retried:
            yield from _miscounted(task, counted)


def _too_many(task: TaskRow, leases: list[LeaseRow], retries: int) -> Iterator[Violation]:
    """Failures on purpose, crashes that were none, and what was returned do not count."""
    names = {lease.worker_name for lease in leases} if task.broadcast else set()
    workers = max(task.workers, len(names), 1) * (1 + retries)
    failed = [lease for lease in leases if lease.status == "failed"]
    failures = sum(RETRY_LATER not in lease.error_class for lease in failed)
    crashes = sum(_is_crash(lease) for lease in leases)
    if failures > workers * task.max_attempts:
        details = f"{failures} failures of {task.max_attempts}"
        yield Violation(9, "A task failed more often than it may.", task.id, details)
    if crashes > workers * task.max_crashes:
        details = f"{crashes} crashes of {task.max_crashes}"
        yield Violation(9, "A task crashed more often than it may.", task.id, details)
    if not task.is_shared and task.crashes >= task.max_crashes and not is_finished(task.status):
        details = f"{task.status} after {task.crashes} crashes of {task.max_crashes}"
        yield Violation(9, "A task goes on that was lost too often.", task.id, details)


def _miscounted(task: TaskRow, leases: list[LeaseRow]) -> Iterator[Violation]:
    ends = Counter(lease.status for lease in leases)
    crashes = sum(_is_crash(lease) for lease in leases)
    for what, said, found, unsure in (
        # A stop turns what was a failure into a stop, and counts nevertheless.
        ("failures", task.failures, ends["failed"], ends["stopped"]),
        ("crashes", task.crashes, crashes, 0),
    ):
        if not found <= said <= found + unsure:
            details = f"The task says {said}, its leases {found}."
            yield Violation(9, f"A task's {what} are miscounted.", task.id, details)


def _is_crash(lease: LeaseRow) -> bool:
    return lease.status == "lost" and not lease.error_message.startswith(NO_CRASH)


def acknowledged_stops_end_tasks(evidence: Evidence) -> Iterator[Violation]:
    """14: a stop that was acknowledged ends the task in its grace, and never as succeeded."""
    for task_id, leases in evidence.leases.items():
        for lease in leases:
            if lease.stop_seen_at is not None:
                yield from _stop_in_vain(evidence, lease)
        task = evidence.tasks.get(task_id)
        if task is None or task.is_shared or task_id in evidence.retried:
            continue
        seen = [lease for lease in leases if lease.stop_seen_at and lease.status != "running"]
        if seen and task.status != TaskStatus.CANCELLED:
            details = f"The task is {task.status}."
            yield Violation(14, "A task went on that had been stopped.", task_id, details)


def _stop_in_vain(evidence: Evidence, lease: LeaseRow) -> Iterator[Violation]:
    bounds = evidence.bounds
    if lease.status == "succeeded":
        sentence = "An attempt succeeded after its stop was seen."
        yield Violation(14, sentence, lease.task_id, str(lease))
    grace = bounds.stop_grace + bounds.kill_grace + bounds.slack
    if lease.error_message.startswith((EXPIRED, ENDED_ON_HOST)):  # Its worker died meanwhile.
        grace += bounds.lease + bounds.takeover_interval
    assert lease.stop_seen_at is not None
    ended = lease.finished_at or evidence.history.gathered_at
    since = evidence.database_back(lease.stop_seen_at, within=grace)
    if ended > since + grace + evidence.kept(since, ended):
        details = f"after {ended - lease.stop_seen_at:.1f} s of {grace:.1f}"
        yield Violation(14, "A stop took longer than its grace.", lease.task_id, details)
