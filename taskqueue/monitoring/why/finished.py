"""How a task ended, and who or what ended it."""

from __future__ import annotations

from taskqueue.engine.connections import database_alias
from taskqueue.models import Audit
from taskqueue.monitoring.why import codes
from taskqueue.monitoring.why.reason import Reason, known
from taskqueue.monitoring.why.surroundings import Surroundings
from taskqueue.states import TaskStatus

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
    """By whom: an attempt that was asked to stop tells, or else the audit."""
    task = around.task
    by, why = "", task.error_message
    stopped = next(
        (
            each
            for each in around.leases
            if each.stop_requested_at is not None and each.attempt > task.attempts_before_retry
        ),
        None,
    )
    if stopped is not None:
        by, why = stopped.stop_requested_by, stopped.stop_reason or why
    else:
        acts = Audit.objects.using(database_alias()).filter(subject=str(task.id), verb="cancel")
        act = acts.order_by("-id").first()
        if act is not None and act.at is not None and _is_of_this_end(around, act):
            by, why = act.actor, act.reason or why
    return Reason(
        code=codes.CANCELLED,
        subject=by,
        moment=task.finished_at,
        details=known(reason=_short(why), attempt=task.attempt),
    )


def _is_of_this_end(around: Surroundings, act: Audit) -> bool:
    """Whether it was not retried since, to be ended by something else."""
    finished_at = around.task.finished_at
    return finished_at is not None and abs((finished_at - act.at).total_seconds()) < 60


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
