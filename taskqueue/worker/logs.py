"""Where the log of a worker goes: where LOGGING says, and else to standard error."""

from __future__ import annotations

import logging

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
    if not own.hasHandlers():
        own.addHandler(_console())
        own.setLevel(level)
    elif level != USUAL and own.level == logging.NOTSET:
        own.setLevel(level)
    if not _is_shown(failures):
        console = _console()
        console.setLevel(logging.WARNING)
        failures.addHandler(console)


def _console() -> logging.Handler:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    return handler


def _is_shown(logger: logging.Logger) -> bool:
    """Whether an error of that logger reaches a handler, other than by mail.

    Django's default LOGGING gives it one that is silent unless DEBUG is on.
    """
    record = logger.makeRecord(logger.name, logging.ERROR, "", 0, "", (), None)
    each: logging.Logger | None = logger
    while each is not None:
        for handler in each.handlers:
            is_mail = isinstance(handler, AdminEmailHandler)
            if not is_mail and handler.level <= logging.ERROR and handler.filter(record):
                return True
        each = each.parent if each.propagate else None
    return False
