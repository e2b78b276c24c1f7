"""Who holds a task that runs, and whether all is well with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from taskqueue.monitoring.why import codes
from taskqueue.monitoring.why.pending import paused
from taskqueue.monitoring.why.reason import Reason, known
from taskqueue.monitoring.why.several import is_shared, of_several
from taskqueue.monitoring.why.staffing import without_workers
from taskqueue.monitoring.why.surroundings import Surroundings

MOST_SHOWN = 20
"""Attempts; a broadcast may have thousands."""


def why_running(around: Surroundings) -> list[Reason]:
    """Each attempt that runs; for several workers, also what keeps the next of them."""
    reasons = [each for lease in around.held[:MOST_SHOWN] for each in _of_attempt(around, lease)]
    if is_shared(around):
        reasons += of_several(around)
        if around.task.open_slots:
            reasons += [*paused(around), *without_workers(around)]
    return reasons or [Reason(code=codes.CHANGING)]


def _of_attempt(around: Surroundings, lease: Any) -> Iterator[Reason]:
    has_begun = lease.started_at is not None
    yield Reason(
        code=codes.RUNNING if has_begun else codes.CLAIMED,
        subject=lease.worker_id,
        moment=lease.started_at if has_begun else lease.claimed_at,
        details={"attempt": lease.attempt, "expires_at": lease.expires_at},
    )
    if lease.stop_requested_at is not None:
        yield Reason(
            code=codes.STOP_REQUESTED,
            subject=lease.stop_requested_by,
            moment=lease.stop_requested_at,
            details=known(reason=lease.stop_reason, seen_at=lease.stop_seen_at),
        )
    if lease.wedged_at is not None:
        yield Reason(code=codes.WEDGED, subject=lease.worker_id, moment=lease.wedged_at)
    worker = next((each for each in around.workers if each.name == lease.worker_id), None)
    if worker is None:
        yield Reason(code=codes.WORKER_LOST, subject=lease.worker_id)
    elif worker.started_at > lease.claimed_at:
        yield Reason(code=codes.WORKER_REPLACED, subject=worker.name)
    elif not worker.is_alive:
        yield Reason(code=codes.WORKER_LOST, subject=worker.name, moment=worker.seen_at)
    if lease.id in around.lost and lease.expires_at > around.now:
        yield Reason(code=codes.LOST_HOLDS, subject=lease.worker_id, moment=lease.expires_at)
    if lease.expires_at <= around.now:
        yield Reason(code=codes.LEASE_OVER, subject=lease.worker_id, moment=lease.expires_at)
