"""Where the log of a worker goes: where LOGGING says, and else to standard error."""

from __future__ import annotations

import logging
from typing import TextIO

from django.utils.log import AdminEmailHandler

from taskqueue.engine.failures import logger as failures

USUAL = logging.INFO
"""The level of `--verbosity 1`."""


def show_logs(level: int = USUAL) -> None:
    """Show the logs of taskqueue, and of tasks that fail, from that level on.

    They go to standard error, each of them unless the project's LOGGING sends it somewhere. A
    level that LOGGING sets stays.
    """
    own = logging.getLogger("taskqueue")
    if own.level == logging.NOTSET:
        own.setLevel(level)
    if not own.hasHandlers():
        own.addHandler(_Console())
    if not _is_shown(failures, logging.ERROR):
        console = _Console()
        console.setLevel(logging.WARNING)
        failures.addHandler(console)


class _Console(logging.StreamHandler[TextIO]):
    """Standard error, for those records that no other handler shows.

    The project's code may add a handler at any time: `logging.info` adds one to the root logger.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if not _is_shown(logging.getLogger(record.name), record.levelno):
            super().emit(record)


def _is_shown(logger: logging.Logger, level: int) -> bool:
    """Whether a record of that logger and level reaches a handler of the project that shows it.

    Mail shows nothing. Django's default LOGGING has a handler that is silent unless DEBUG is on.
    """
    # Not the record itself: a filter that lets each pass once would then drop it.
    record = logger.makeRecord(logger.name, level, "", 0, "", (), None)
    each: logging.Logger | None = logger
    while each is not None:
        for handler in each.handlers:
            is_other = not isinstance(handler, _Console | AdminEmailHandler)
            if is_other and handler.level <= level and handler.filter(record):
                return True
        each = each.parent if each.propagate else None
    return False
