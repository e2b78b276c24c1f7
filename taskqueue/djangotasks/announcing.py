"""Keep Django's own record of a failed task from counting as a second error.

Django logs the end of a task from a receiver of `task_finished`: a failure at ERROR, though it may
be one that was cancelled. The worker has logged the failure before, for tasks of all kinds alike.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from taskqueue.djangotasks import signals

_is_announcing: ContextVar[bool] = ContextVar("taskqueue_is_announcing", default=False)
RECEIVER = "log_task_finished"
"""Django's receiver that logs."""


@contextmanager
def announcing() -> Iterator[None]:
    """Around a signal of an attempt's end: what Django logs of it is logged at INFO."""
    token = _is_announcing.set(True)
    try:
        yield
    finally:
        _is_announcing.reset(token)


def _demote(record: logging.LogRecord) -> bool:
    if not _is_announcing.get() or record.funcName != RECEIVER or record.levelno <= logging.INFO:
        return True
    record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
    record.exc_info = record.exc_text = None
    return logging.getLogger(record.name).isEnabledFor(logging.INFO)


signals.logger.addFilter(_demote)
