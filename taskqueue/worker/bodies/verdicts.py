"""The outcome of an attempt whose body has raised, or met no database."""

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
from taskqueue.engine.transient_errors import is_busy
from taskqueue.exceptions import (
    ArgumentsDoNotBind,
    Cancel,
    DeadlineExceeded,
    GiveUp,
    InvalidArguments,
    InvalidWorkflow,
    LeaseEnded,
    RetryLater,
    Snooze,
    Stopped,
)

if TYPE_CHECKING:
    from taskqueue.worker.bodies.execution import Attempt

logger = logging.getLogger("taskqueue.worker")
LONGEST_MESSAGE = 4096
# The fewest seconds until a worker claims tasks of a definition again whose body met no database.
AWAY_PAUSE = 1.0
NEVER_RETRIED = (ArgumentsDoNotBind, InvalidArguments, InvalidWorkflow, DeadlineExceeded, GiveUp)


def verdict_on(error: BaseException, attempt: Attempt) -> Outcome:
    """Return the outcome of an attempt that has just raised `error`."""
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
    if isinstance(error, NEVER_RETRIED):
        return outcome._replace(retryable=False)
    if snapshots.snoozes(snapshot, type(error)):
        outcome = outcome._replace(kind=OutcomeKind.SNOOZED)
    elif not snapshots.retries(snapshot, type(error)):
        return outcome._replace(retryable=False)
    delay = None if "backoff" in snapshot else _delay_by_callable(error, attempt)
    if delay is None:
        delay = snapshots.delay(snapshot, order.failures + 1)
    return outcome._replace(delay=delay)


def away(outcome: Outcome, error: BaseException) -> Outcome:
    """Return the outcome for an attempt whose database went away, before it or at its end."""
    return outcome._replace(
        error_class=storable(class_path(type(error)), limit=255),
        error_message="The database went away around the body.",
    )


def not_begun(outcome: Outcome, error: BaseException) -> Outcome:
    """Return the outcome for an attempt whose body did not begin, because it met no database."""
    outcome = outcome._replace(started=None)
    if is_busy(error):
        # It has waited for SQLite's write lock, and everybody else waits too.
        return outcome._replace(kind=OutcomeKind.UNSTARTED)
    message = f"The child process could not reach the database: {_message(error)}"
    # The delay is for the parent, whose session may be well and could claim the task at once.
    return away(outcome, error)._replace(error_message=message, delay=AWAY_PAUSE)


def _delay_by_callable(error: BaseException, attempt: Attempt) -> float | None:
    """Return the delay from the definition's callable; None if there is none, or if it fails."""
    definition, task_id = attempt.definition, attempt.order.task_id
    backoff = None if definition is None else definition.options.backoff
    if definition is None or backoff is None or isinstance(backoff, Backoff):
        return None
    try:
        delay = seconds_of(backoff(error, attempt.context.task_result))
    except BaseException:
        # Including exceptions that end the program, because the attempt's outcome would be lost
        # with it.
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
    """Return the traceback as text. A long one is shortened in the middle, as its end says most."""
    limit = get_settings().MAX_TRACEBACK
    try:
        text = "".join(traceback.format_exception(error, limit=200))
    except Exception as unprintable:
        text = f"<the traceback could not be written: {type(unprintable).__name__}>"
    if len(text) > limit:
        half = (limit - 40) // 2
        text = f"{text[:half]}\n… [{len(text) - 2 * half} characters cut] …\n{text[-half:]}"
    return storable(text, limit=limit)
