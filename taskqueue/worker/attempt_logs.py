"""The log records of a worker about failed attempts: one for each."""

from __future__ import annotations

import logging
import sys
import traceback
from types import TracebackType

from taskqueue.core.log_text import one_line
from taskqueue.core.outcomes import EFFECTS, Outcome, OutcomeKind, is_final
from taskqueue.core.states import TaskStatus
from taskqueue.engine.failures import NOT_RETRIED, extra, log_failed, log_retried, logger
from taskqueue.worker.jobs import Job, Order

worker_logger = logging.getLogger("taskqueue.worker")

RUNNERS = ("taskqueue.worker.execution", "taskqueue.worker.slots", "taskqueue.testing.attempts")
"""The modules through which a body is called."""


def log_raised(order: Order, outcome: Outcome, error: BaseException) -> None:
    """Log what a body raised, in the child: as an error if the task fails, else as a warning.

    Never raises, whatever the project's handlers do.
    """
    fields = order.name, order.task_id, order.attempt, order.queue_name
    named = extra(
        task_id=order.task_id,
        name=order.name,
        attempt=order.attempt,
        queue_name=order.queue_name,
    )
    try:
        if is_final(outcome, failures=order.failures, max_attempts=order.max_attempts):
            message = "Task failed task=%s id=%s attempt=%s queue=%s"
            logger.error(message, *fields, exc_info=error, extra=named)
        else:
            message = "Attempt failed, the task is retried task=%s id=%s attempt=%s queue=%s"
            logger.warning(message, *fields, exc_info=error, extra=named)
    except Exception:
        traceback.print_exc(file=sys.stderr)


def note_told(job: Job, outcome: Outcome) -> None:
    """Remember, in the parent, as what the child has logged a failure that it reports."""
    if outcome.kind == OutcomeKind.FAILED:
        has_ended = is_final(outcome, failures=job.failures, max_attempts=job.max_attempts)
        job.told = TaskStatus.FAILED if has_ended else TaskStatus.RETRYING


def log_untold(job: Job, outcome: Outcome, status: str | None) -> None:
    """Log a failure that no child has logged, or that the database took for a graver one."""
    if not EFFECTS[outcome.kind].limited_by:
        return
    if status == TaskStatus.FAILED and job.told != TaskStatus.FAILED:
        log = log_failed
    elif status not in NOT_RETRIED and not job.told and outcome.kind != OutcomeKind.PARKED:
        log = log_retried
    else:
        return
    log(
        task_id=job.task_id,
        name=job.name,
        attempt=job.order[3],
        queue_name=job.queue_name,
        error_class=outcome.error_class,
        message=outcome.error_message,
    )


def log_ended(job: Job, outcome: str, status: str | None, *, seconds: float | None) -> None:
    """Log one attempt, for those who want a line of each."""
    if worker_logger.isEnabledFor(logging.DEBUG):
        worker_logger.debug(
            "Attempt ended task=%s id=%s attempt=%s outcome=%s now=%s seconds=%s",
            one_line(job.name), job.task_id, job.order[3], outcome, status or "ended before",
            "-" if seconds is None else f"{seconds:.3f}",
        )  # fmt: skip


def from_the_body(error: BaseException) -> None:
    """Let the traceback begin at the body, also those of the errors that it came of.

    The frames before it are the worker's. They say nothing of the error, and their variables hold
    the arguments, which error reporting would send along. Where no body was called, or it had
    returned, no frame of taskqueue is left.
    """
    met: set[int] = set()
    chain: list[BaseException | None] = [error]
    while chain:
        each = chain.pop()
        if each is not None and id(each) not in met:
            met.add(id(each))
            each.__traceback__ = _after_ours(each.__traceback__)
            chain += (each.__cause__, each.__context__)


def _after_ours(whole: TracebackType | None) -> TracebackType | None:
    """Cut the frames of taskqueue from the head of a traceback."""
    found = each = whole
    while each is not None:
        if _module_of(each) in RUNNERS:
            found = each.tb_next
        each = each.tb_next
    while found is not None and _module_of(found).partition(".")[0] == "taskqueue":
        found = found.tb_next
    return found


def _module_of(frame: TracebackType) -> str:
    return str(frame.tb_frame.f_globals.get("__name__"))
