"""What keeps a task from running that nobody holds."""

from __future__ import annotations

from collections.abc import Iterator

from taskqueue.conf import get_settings
from taskqueue.core.states import WAITING, TaskStatus
from taskqueue.monitoring.why import codes
from taskqueue.monitoring.why.line import in_line
from taskqueue.monitoring.why.reason import Reason, known
from taskqueue.monitoring.why.several import of_several
from taskqueue.monitoring.why.staffing import without_workers
from taskqueue.monitoring.why.surroundings import Surroundings


def why_pending(around: Surroundings) -> list[Reason]:
    """All that holds it back; that it stands in line, where nothing else does."""
    if around.task.status == TaskStatus.BLOCKED:
        return [*_overdue(around), Reason(code=codes.BLOCKED)]
    reasons = [
        *_overdue(around),
        *_time(around),
        *_unknown(around),
        *paused(around),
        *of_several(around),
        *without_workers(around),
    ]
    # To be told of by several workers, or none yet, keeps nobody from taking it.
    if all(each.code in (codes.MORE_WORKERS, codes.UNSEATED) for each in reasons):
        reasons += in_line(around)
    return reasons


def _overdue(around: Surroundings) -> Iterator[Reason]:
    task = around.task
    if task.deadline_at is not None and task.deadline_at <= around.now:
        yield Reason(code=codes.DEADLINE_PASSED, moment=task.deadline_at)
    if task.started_at is None and task.expires_at is not None and task.expires_at <= around.now:
        yield Reason(code=codes.EXPIRED, moment=task.expires_at)


def _time(around: Surroundings) -> Iterator[Reason]:
    task = around.task
    if task.status not in WAITING:
        return
    if task.run_after <= around.now:
        yield Reason(code=codes.DUE, moment=task.run_after)
    elif task.status == TaskStatus.RETRYING:
        last = around.leases[0] if around.leases else None
        yield Reason(
            code=codes.RETRY_DUE,
            subject=last.error_class if last is not None else "",
            moment=task.run_after,
            details=known(attempt=last.attempt if last is not None else None),
        )
    else:
        yield Reason(code=codes.NOT_DUE, moment=task.run_after)


def _unknown(around: Surroundings) -> Iterator[Reason]:
    task = around.task
    if task.parked_at is not None:
        yield Reason(
            code=codes.UNKNOWN,
            subject=task.name,
            moment=task.parked_at,
            details={"fails_at": task.parked_at + get_settings().PARK_LIMIT},
        )


def paused(around: Surroundings) -> Iterator[Reason]:
    """That its queue is paused."""
    queue = around.queue
    if queue is not None and queue.is_paused_at(around.now):
        yield Reason(
            code=codes.QUEUE_PAUSED,
            subject=queue.name,
            moment=queue.paused_until,
            details=known(by=queue.paused_by, reason=queue.pause_reason),
        )
