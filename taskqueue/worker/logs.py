"""Configure a worker's log records: to where LOGGING sends them, else to standard error."""

from __future__ import annotations

import logging
from typing import TextIO

from django.conf import settings
from django.utils.log import AdminEmailHandler

from taskqueue.engine.failures import logger as failures_logger

DEFAULT_LEVEL = logging.INFO  # The level of `--verbosity 1`.
FORMATTER = logging.Formatter("%(asctime)s %(levelname)s %(message)s")


def show_logs(level: int = DEFAULT_LEVEL) -> None:
    """Show the logs of taskqueue, and of failed tasks, from `level` on.

    A record goes to standard error unless the project's LOGGING sends it elsewhere. A level that
    LOGGING sets is kept.
    """
    own = logging.getLogger("taskqueue")
    if own.level == logging.NOTSET:
        own.setLevel(level)
    if not own.hasHandlers():
        own.addHandler(_Console())
    if not _is_shown(failures_logger, logging.ERROR):
        console = _Console()
        console.setLevel(logging.WARNING)
        failures_logger.addHandler(console)
    if not settings.LOGGING:
        _format_console_of_django()


def _format_console_of_django() -> None:
    """Let Django's own console handler, which DEBUG turns on, print times and levels too."""
    for handler in logging.getLogger("django").handlers:
        if type(handler) is logging.StreamHandler and handler.formatter is None:
            handler.setFormatter(FORMATTER)


class _Console(logging.StreamHandler[TextIO]):
    """Standard error, for records that no other handler shows.

    The project's code may add a handler at any time: `logging.info` adds one to the root logger.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(FORMATTER)

    def emit(self, record: logging.LogRecord) -> None:
        if not _is_shown(logging.getLogger(record.name), record.levelno):
            super().emit(record)


def _is_shown(logger: logging.Logger, level: int) -> bool:
    """Return whether a handler of the project shows records of that logger and level.

    Mail does not count. Django's default LOGGING has a handler that is silent unless DEBUG is on.
    """
    # Tested with another record: a filter that lets each record pass once would drop the real one.
    record = logger.makeRecord(logger.name, level, "", 0, "", (), None)
    ancestor: logging.Logger | None = logger
    while ancestor is not None:
        for handler in ancestor.handlers:
            is_other = not isinstance(handler, _Console | AdminEmailHandler)
            if is_other and handler.level <= level and handler.filter(record):
                return True
        ancestor = ancestor.parent if ancestor.propagate else None
    return False
