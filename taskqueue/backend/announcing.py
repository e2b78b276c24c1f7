"""Keep Django's own record of a failed task from counting as a second error.

Django logs the end of a task from a receiver of `task_finished`, with the exception: a failure at
ERROR, also where the task was cancelled. The worker has logged the failure before, for tasks of all
kinds alike.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from taskqueue.backend.framework import signals

_is_announcing: ContextVar[bool] = ContextVar("taskqueue_is_announcing", default=False)
RECEIVER = "log_task_finished"
"""Django's receiver that logs."""


@contextmanager
def announcing() -> Iterator[None]:
    """Around a signal of an attempt's end: Django logs it at INFO then, without the exception."""
    token = _is_announcing.set(True)
    try:
        yield
    finally:
        _is_announcing.reset(token)


def _demote(record: logging.LogRecord) -> bool:
    if not _is_announcing.get() or record.funcName != RECEIVER:
        return True
    record.exc_info = record.exc_text = None
    if record.levelno > logging.INFO:
        record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
    return logging.getLogger(record.name).isEnabledFor(record.levelno)


signals.logger.addFilter(_demote)
