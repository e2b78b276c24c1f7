"""What a raised exception makes of an attempt."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

from taskqueue import snapshots
from taskqueue.conf import get_settings
from taskqueue.definitions import Definition
from taskqueue.exceptions import (
    ArgumentsDoNotBind,
    Cancel,
    DeadlineExceeded,
    GiveUp,
    InvalidArguments,
    LeaseEnded,
    RetryLater,
    Snooze,
    Stopped,
)
from taskqueue.outcomes import Kind, Outcome
from taskqueue.payload import storable
from taskqueue.retries import LONGEST, seconds_of

logger = logging.getLogger("taskqueue.worker")

LONGEST_MESSAGE = 4096
NEVER_RETRIED = (ArgumentsDoNotBind, InvalidArguments, DeadlineExceeded, GiveUp)


def verdict_on(
    error: BaseException,
    *,
    lease_id: int,
    definition: Definition[Any, Any] | None,
    snapshot: dict[str, Any],
    failures: int,
    result: Callable[[], Any],
) -> Outcome:
    """The outcome of an attempt that raised `error`, after that many earlier failures."""
    outcome = Outcome(lease_id, Kind.FAILED, error_message=_message(error))
    if isinstance(error, Snooze):
        return outcome._replace(kind=Kind.SNOOZED, delay=error.delay.total_seconds())
    if isinstance(error, Cancel):
        return outcome._replace(kind=Kind.CANCELLED)
    if isinstance(error, Stopped):
        return outcome._replace(kind=Kind.STOPPED)
    if isinstance(error, LeaseEnded):
        return outcome._replace(kind=Kind.RETURNED)
    outcome = outcome._replace(
        error_class=storable(snapshots.class_path(type(error)), limit=255),
        traceback=_traceback(error),
    )
    if isinstance(error, RetryLater):
        return outcome._replace(kind=Kind.RETRY_LATER, delay=error.delay.total_seconds())
    if isinstance(error, NEVER_RETRIED) or not snapshots.retries(snapshot, type(error)):
        return outcome._replace(retryable=False)
    return outcome._replace(delay=_delay(error, definition, snapshot, failures + 1, result))


def _delay(
    error: BaseException,
    definition: Definition[Any, Any] | None,
    snapshot: dict[str, Any],
    failures: int,
    result: Callable[[], Any],
) -> float:
    backoff = definition.options.backoff if definition else None
    if "backoff" not in snapshot and callable(backoff):
        try:
            delay = seconds_of(backoff(error, result()))
            if 0 <= delay <= LONGEST:
                return delay
            logger.error("Backoff out of range task=%s delay=%s", definition, delay)
        except Exception:
            logger.exception("Backoff failed task=%s", definition)
    return snapshots.delay(snapshot, failures)


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as unprintable:
        text = f"<the message of {type(error).__name__} raised {type(unprintable).__name__}>"
    return storable(text, limit=LONGEST_MESSAGE)


def _traceback(error: BaseException) -> str:
    """The end of the traceback says most: a long one is cut in its middle."""
    limit = get_settings().MAX_TRACEBACK
    try:
        text = "".join(traceback.format_exception(error, limit=200))
    except Exception as unprintable:
        text = f"<the traceback could not be written: {type(unprintable).__name__}>"
    if len(text) > limit:
        half = (limit - 40) // 2
        text = f"{text[:half]}\n… [{len(text) - 2 * half} characters cut] …\n{text[-half:]}"
    return storable(text, limit=limit)
