"""The reasons of running and finished tasks: the holder, or how the task ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from taskqueue.core.states import TaskStatus
from taskqueue.monitoring.why import codes
from taskqueue.monitoring.why.codes import Reason, known
from taskqueue.monitoring.why.pending import is_shared, of_several, paused, without_workers
from taskqueue.monitoring.why.surroundings import Surroundings
from taskqueue.results.reading import cancellation_of

# Attempts; a broadcast may have thousands.
MOST_SHOWN = 20


def why_running(around: Surroundings) -> list[Reason]:
    """Return each running attempt; for several workers, also what keeps the next."""
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


LONGEST_MESSAGE = 500


def why_finished(around: Surroundings) -> list[Reason]:
    """Return how it ended, and whether no attempt was left."""
    if around.task.status == TaskStatus.SUCCEEDED:
        task = around.task
        details = {"attempt": task.attempt}
        return [Reason(code=codes.SUCCEEDED, moment=task.finished_at, details=details)]
    if around.task.status == TaskStatus.CANCELLED:
        return [_cancelled(around)]
    return _failed(around)


def _failed(around: Surroundings) -> list[Reason]:
    task = around.task
    details = known(message=_short(task.error_message), attempt=task.attempt)
    reasons = [
        Reason(
            code=codes.FAILED, subject=task.error_class, moment=task.finished_at, details=details
        )
    ]
    if task.crashes >= task.max_crashes:
        reasons.append(Reason(code=codes.NO_CRASHES_LEFT, details={"most": task.max_crashes}))
    elif task.failures >= task.max_attempts:
        reasons.append(Reason(code=codes.NO_ATTEMPTS_LEFT, details={"most": task.max_attempts}))
    return reasons


def _cancelled(around: Surroundings) -> Reason:
    task = around.task
    by, reason = cancellation_of(task, around.leases) or ("", task.error_message)
    return Reason(
        code=codes.CANCELLED,
        subject=by,
        moment=task.finished_at,
        details=known(reason=_short(reason), attempt=task.attempt),
    )


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
