"""Why a task has its status: `why(task)`, and the reasons for running and finished tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from taskqueue.core.states import FINISHED, PENDING, TaskStatus
from taskqueue.models import Task
from taskqueue.monitoring.why.pending import of_several, paused, why_pending, without_workers
from taskqueue.monitoring.why.reasons import Reason, because
from taskqueue.monitoring.why.surroundings import Surroundings
from taskqueue.monitoring.why.workflows import why_workflow
from taskqueue.results.reading import cancellation_of

__all__ = ["Reason", "why", "why_workflow"]


def why(task: Task) -> list[Reason]:
    """Return what keeps the task from running, who holds it, or how it ended: at least one reason.

    It makes a few queries by indexes; the given row of the task is used as it is.
    """
    around = Surroundings(task)
    if task.status in PENDING:
        return why_pending(around)
    return list(why_finished(around)) if task.status in FINISHED else why_running(around)


# The most attempts; a broadcast may have thousands.
MOST_SHOWN = 20


def why_running(around: Surroundings) -> list[Reason]:
    """Return each running attempt; for several workers, also what keeps the next one waiting."""
    reasons = [each for lease in around.held[:MOST_SHOWN] for each in _of_attempt(around, lease)]
    if around.is_shared:
        reasons += of_several(around)
        if around.task.open_slots:
            reasons += [*paused(around), *without_workers(around)]
    return reasons or [because("changing")]


def _of_attempt(around: Surroundings, lease: Any) -> Iterator[Reason]:
    yield because(
        "running" if lease.started_at else "claimed", lease.worker_id,
        lease.started_at or lease.claimed_at, attempt=lease.attempt, expires_at=lease.expires_at,
    )  # fmt: skip
    if lease.stop_requested_at is not None:
        why = {"reason": lease.stop_reason, "seen_at": lease.stop_seen_at}
        yield because("stop_requested", lease.stop_requested_by, lease.stop_requested_at, **why)
    if lease.wedged_at is not None:
        yield because("wedged", lease.worker_id, lease.wedged_at)
    worker = next((each for each in around.workers if each.name == lease.worker_id), None)
    if worker is None:
        yield because("worker_lost", lease.worker_id)
    elif worker.started_at > lease.claimed_at:
        yield because("worker_replaced", worker.name)
    elif not worker.is_alive:
        yield because("worker_lost", worker.name, worker.seen_at)
    if lease.id in around.lost and lease.expires_at > around.now:
        yield because("lost_holds", lease.worker_id, lease.expires_at)
    if lease.expires_at <= around.now:
        yield because("lease_over", lease.worker_id, lease.expires_at)


LONGEST_MESSAGE = 500


def why_finished(around: Surroundings) -> Iterator[Reason]:
    """Yield how it ended, and whether no attempt was left."""
    task = around.task
    if task.status == TaskStatus.SUCCEEDED:
        yield because("succeeded", moment=task.finished_at, attempt=task.attempt)
    elif task.status == TaskStatus.CANCELLED:
        by, reason = cancellation_of(task, around.leases) or ("", task.error_message)
        yield because(
            "cancelled", by, task.finished_at, reason=_short(reason), attempt=task.attempt
        )
    else:
        message = _short(task.error_message)
        yield because(
            "failed", task.error_class, task.finished_at, message=message, attempt=task.attempt
        )
        if task.crashes >= task.max_crashes:
            yield because("no_crashes_left", most=task.max_crashes)
        elif task.failures >= task.max_attempts:
            yield because("no_attempts_left", most=task.max_attempts)
    until = task.unique_until
    if task.holds_unique_key and until is not None and until > around.now:
        yield because("key_held", moment=until)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
