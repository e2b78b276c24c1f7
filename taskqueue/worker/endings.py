"""Outcomes of attempts: by what a body raised, or by the parent where no child reports any."""

from __future__ import annotations

import logging
import time
import traceback
from typing import TYPE_CHECKING

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.core.retries import LONGEST, Backoff, class_path, seconds_of
from taskqueue.declarations import snapshots
from taskqueue.declarations.payload import storable
from taskqueue.exceptions import (
    ArgumentsDoNotBind,
    AttemptLost,
    Cancel,
    DeadlineExceeded,
    GiveUp,
    InvalidArguments,
    InvalidWorkflow,
    LeaseEnded,
    RetryLater,
    Snooze,
    Stopped,
    TaskTimeout,
)
from taskqueue.worker.jobs import Job

if TYPE_CHECKING:
    from taskqueue.worker.execution import Attempt

logger = logging.getLogger("taskqueue.worker")
LONGEST_MESSAGE = 4096
NEVER_RETRIED = (ArgumentsDoNotBind, InvalidArguments, InvalidWorkflow, DeadlineExceeded, GiveUp)


def over_time(timeout: float, *, renews: bool) -> str:
    """Return the message of a time limit that is over."""
    if renews:
        return f"The body reported no progress for its timeout of {timeout:g} s."
    return f"The body ran for longer than its timeout of {timeout:g} s."


def unstarted(job: Job, now: float) -> Outcome:
    """Its body never started: handed back, or stopped if somebody asked for that."""
    if job.stop_reason is not None:
        return stopped(job, now)
    return Outcome(job.lease_id, OutcomeKind.UNSTARTED, now)


def interrupted(job: Job, now: float) -> Outcome:
    """Its body was killed by a shutdown: it runs again, unless somebody asked it to stop."""
    if job.stop_reason is not None:
        return stopped(job, now)
    return _ended(job, OutcomeKind.RETURNED, now, "The worker was shut down.")


def stopped(job: Job, now: float) -> Outcome:
    """Somebody asked it to stop."""
    return _ended(job, OutcomeKind.STOPPED, now, job.stop_reason or "")


def lost(job: Job, now: float, *, end: str) -> Outcome:
    """The child that ran it died: a crash."""
    return _ended(job, OutcomeKind.LOST, now, f"The child process died: {end}.", AttemptLost)


def fenced(job: Job, now: float) -> Outcome:
    """The worker could not renew the lease, and its child ended itself in time: no crash."""
    message = "The worker could not renew its leases in time, and stopped its bodies."
    return _ended(job, OutcomeKind.FENCED, now, message, AttemptLost)


def unconfirmed(success: Outcome) -> Outcome:
    """Its body's COMMIT got no answer, and did not take effect: no crash."""
    return success._replace(
        kind=OutcomeKind.FENCED,
        error_class=class_path(AttemptLost),
        error_message="The database went away at the body's COMMIT, which did not take effect.",
    )


def time_over(job: Job, now: float) -> Outcome:
    """It ran past its timeout or deadline, and did not stop.

    No child is left to ask, so the stored options decide.
    """
    at_deadline = job.deadline_at is not None and job.limit_at == job.deadline_at
    error = DeadlineExceeded if at_deadline else TaskTimeout
    message = "The deadline passed while the body ran."
    if not at_deadline:
        message = (
            f"{over_time(job.timeout or 0.0, renews=job.renews_limit).rstrip('.')}, "
            "and did not stop when it was interrupted."
        )
    return _ended(job, OutcomeKind.FAILED, now, message, error)._replace(
        delay=snapshots.delay(job.snapshot, job.failures + 1),
        retryable=not at_deadline and snapshots.retries(job.snapshot, error),
    )


def _ended(
    job: Job,
    kind: OutcomeKind,
    now: float,
    message: str,
    error: type[BaseException] | None = None,
) -> Outcome:
    return Outcome(
        job.lease_id,
        kind,
        now,
        error_class=class_path(error) if error else "",
        error_message=message,
        started=job.started_at,
    )


def verdict_on(error: BaseException, attempt: Attempt) -> Outcome:
    """The outcome of an attempt that raised `error` now."""
    order, snapshot = attempt.order, attempt.snapshot
    outcome = Outcome(
        order.lease_id,
        OutcomeKind.FAILED,
        time.monotonic(),
        error_message=_message(error),
        started=attempt.started_at,
    )
    if isinstance(error, Snooze):
        return outcome._replace(kind=OutcomeKind.SNOOZED, delay=error.delay.total_seconds())
    if isinstance(error, Cancel):
        return outcome._replace(kind=OutcomeKind.CANCELLED)
    if isinstance(error, Stopped):
        return outcome._replace(kind=OutcomeKind.STOPPED)
    if isinstance(error, LeaseEnded):
        return outcome._replace(kind=OutcomeKind.RETURNED)
    outcome = outcome._replace(
        error_class=storable(class_path(type(error)), limit=255),
        traceback=_traceback(error),
    )
    if isinstance(error, RetryLater):
        return outcome._replace(kind=OutcomeKind.RETRY_LATER, delay=error.delay.total_seconds())
    if isinstance(error, NEVER_RETRIED) or not snapshots.retries(snapshot, type(error)):
        return outcome._replace(retryable=False)
    delay = None if "backoff" in snapshot else _delay_by_callable(error, attempt)
    if delay is None:
        delay = snapshots.delay(snapshot, order.failures + 1)
    return outcome._replace(delay=delay)


def _delay_by_callable(error: BaseException, attempt: Attempt) -> float | None:
    """The delay that the definition's callable returns; None without one, or where it fails."""
    definition, task_id = attempt.definition, attempt.order.task_id
    backoff = None if definition is None else definition.options.backoff
    if definition is None or backoff is None or isinstance(backoff, Backoff):
        return None
    try:
        delay = seconds_of(backoff(error, attempt.context.task_result))
    except BaseException:
        # Also one that ends the program: it would take the attempt's outcome along.
        logger.exception(
            "Backoff failed, the default is used task=%s id=%s", definition.name, task_id
        )
        return None
    if not 0 <= delay <= LONGEST:
        logger.error(
            "Backoff out of range, the default is used task=%s id=%s delay=%s",
            definition.name, task_id, delay,
        )  # fmt: skip
        return None
    return delay


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as unprintable:
        text = f"<the message of {type(error).__name__} raised {type(unprintable).__name__}>"
    return storable(text, limit=LONGEST_MESSAGE)


def _traceback(error: BaseException) -> str:
    """The traceback as text, a long one cut in its middle: its end says most."""
    limit = get_settings().MAX_TRACEBACK
    try:
        text = "".join(traceback.format_exception(error, limit=200))
    except Exception as unprintable:
        text = f"<the traceback could not be written: {type(unprintable).__name__}>"
    if len(text) > limit:
        half = (limit - 40) // 2
        text = f"{text[:half]}\n… [{len(text) - 2 * half} characters cut] …\n{text[-half:]}"
    return storable(text, limit=limit)
