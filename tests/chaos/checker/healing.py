"""Invariants 8 and 15: what happens to work when workers or the database go away and come back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from taskqueue.worker.duties import WORKFLOW_TURN
from taskqueue.worker.takeover import LONGEST_GAP, LOOK_INTERVAL, SECOND_LOOK
from tests.chaos.checker.evidence import Evidence, Violation
from tests.chaos.checker.ownership import taken_over
from tests.chaos.history import Stall, Term
from tests.chaos.pace import kept


def faults_heal(evidence: Evidence) -> Iterator[Violation]:
    """8: after a fault, every due task ends within lease, scan, backoff and its own work."""
    bounds = evidence.bounds
    allowed = bounds.takeover_interval + bounds.slack
    for lease in taken_over(evidence):
        since = evidence.database_back(lease.expires_at, within=allowed)
        ended = lease.finished_at
        if ended is not None and ended > since + allowed + _kept_from_looks(evidence, since, ended):
            late = f"{ended - since:.3f} s after it could have been"
            yield Violation(8, "A lease was taken over late.", lease.task_id, f"{late}: {lease}")
    now = evidence.history.gathered_at
    running = [lease for lease in evidence.history.leases if lease.status == "running"]
    for lease in running if evidence.history.is_over else ():
        since = evidence.database_back(lease.expires_at, within=allowed)
        if now > since + allowed + _kept_from_looks(evidence, since, now):
            details = f"{now - lease.expires_at:.3f} s ago: {lease}"
            yield Violation(8, "A lease ran out and nobody cares.", lease.task_id, details)
    if bounds.healing is not None and evidence.history.faults:
        yield from _unhealed(evidence, bounds.healing)


def _kept_from_looks(evidence: Evidence, since: float, until: float) -> float:
    """How many seconds of that span are due to the machine or to SQLite's write lock.

    On SQLite a worker looks at a lease again and again for `SECOND_LOOK` seconds. Where two looks
    lie further apart than `LONGEST_GAP` it begins anew, so that a short stall costs far more than
    it took.
    """
    if not evidence.bounds.looks_again:
        return evidence.kept(since, until)
    return kept(evidence.hindrances, since, until) + _gaps(evidence.hindrances, since, until) * (
        SECOND_LOOK + LOOK_INTERVAL
    )


def _gaps(hindrances: Sequence[Stall], since: float, until: float) -> int:
    """How often they may have kept looks too far apart, which do not lie so by themselves.

    Between two of them a worker waits, and may have served workflows.
    """
    needed = LONGEST_GAP - LOOK_INTERVAL - WORKFLOW_TURN
    number, at = 0, since
    for stall in sorted(hindrances):
        at = max(at, stall.since)
        if at < min(stall.until, until) and kept(hindrances, at, at + LONGEST_GAP) > needed:
            number += 1
            at += LONGEST_GAP
    return number


def _unhealed(evidence: Evidence, healing: float) -> Iterator[Violation]:
    healed_at = max(fault.healed_at for fault in evidence.history.faults)
    for task in evidence.tasks.values():
        ended = task.finished_at or evidence.history.gathered_at
        limit = max(healed_at, task.run_after, task.enqueued_at) + healing
        if ended > limit:
            details = f"{task.status} {ended - limit + healing:.1f} s after the last fault"
            yield Violation(8, "A task took too long to heal.", task.id, details)


def told_workers_claim_nothing(evidence: Evidence) -> Iterator[Violation]:
    """15: after SIGTERM a worker claims nothing, and exits within its grace."""
    bounds = evidence.bounds
    for term in evidence.history.terms:
        ended = term.exited_at or evidence.history.gathered_at
        grace = bounds.shutdown_timeout + bounds.slack + evidence.kept(term.at, ended)
        if ended > term.at + grace:
            details = f"{ended - term.at:.1f} s of {bounds.shutdown_timeout:g}"
            yield Violation(15, "A worker took too long to end.", "", f"{term}: {details}")
        for task_id, at in _claims_after(evidence, term, ended):
            details = f"{at - term.at:.3f} s after it was told to end: {term}"
            yield Violation(15, "A worker claimed after it was told to end.", task_id, details)


def _claims_after(evidence: Evidence, term: Term, ended: float) -> Iterator[tuple[str, float]]:
    """Also of those that it handed back without a trace: the triggers know."""
    claims = {
        (lease.task_id, lease.attempt): lease.claimed_at
        for lease in evidence.history.leases
        if lease.worker_name == term.worker_name
    }
    for change in evidence.history.changes:
        is_claim = change.noun == "lease" and not change.before
        if is_claim and change.worker_name == term.worker_name:
            claims.setdefault((change.task_id, change.attempt), change.at)
    for (task_id, _), at in claims.items():
        # A later worker may have the same name.
        seen_by = term.at + evidence.bounds.term_slack + evidence.kept(term.at, at)
        if seen_by < at <= ended:
            yield task_id, at
