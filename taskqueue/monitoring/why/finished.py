"""How a task ended, and who or what ended it."""

from __future__ import annotations

from taskqueue.core.states import TaskStatus
from taskqueue.monitoring.why import codes
from taskqueue.monitoring.why.reason import Reason, known
from taskqueue.monitoring.why.surroundings import Surroundings
from taskqueue.results.reading import cancellation_of

LONGEST_MESSAGE = 500


def why_finished(around: Surroundings) -> list[Reason]:
    """Its end, and whether it was the last that it may come to."""
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
