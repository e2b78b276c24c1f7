"""What a raised exception makes of an attempt."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.core.retries import LONGEST, Backoff, class_path, seconds_of
from taskqueue.declarations import snapshots
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.payload import storable
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

logger = logging.getLogger("taskqueue.worker")

LONGEST_MESSAGE = 4096
NEVER_RETRIED = (ArgumentsDoNotBind, InvalidArguments, DeadlineExceeded, GiveUp)


def verdict_on(
    error: BaseException,
    *,
    lease_id: int,
    definition: BaseDefinition[Any, Any] | None,
    snapshot: dict[str, Any],
    failures: int,
    result: Callable[[], Any],
    task_id: str,
    started_at: float,
) -> Outcome:
    """The outcome of an attempt that raised `error` now, after that many earlier failures."""
    outcome = Outcome(
        lease_id,
        OutcomeKind.FAILED,
        time.monotonic(),
        error_message=_message(error),
        started=started_at,
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
    delay = None
    if definition is not None and "backoff" not in snapshot:
        delay = _delay_by_callable(error, definition, result, task_id)
    if delay is None:
        delay = snapshots.delay(snapshot, failures + 1)
    return outcome._replace(delay=delay)


def _delay_by_callable(
    error: BaseException,
    definition: BaseDefinition[Any, Any],
    result: Callable[[], Any],
    task_id: str,
) -> float | None:
    """What the definition's callable says; None where it has none, or one that fails."""
    backoff = definition.options.backoff
    if isinstance(backoff, Backoff) or backoff is None:
        return None
    try:
        delay = seconds_of(backoff(error, result()))
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
