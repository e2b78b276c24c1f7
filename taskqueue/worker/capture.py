"""Keep what bodies log with their attempts, without a change to what the project's handlers get."""

from __future__ import annotations

import logging

from taskqueue.conf import get_settings
from taskqueue.worker.context import Context, _current

NEVER_KEPT = ("django.tasks", "django_tasks", "django.db.backends", "taskqueue.worker")
_level = logging.INFO
_FORMATTER = logging.Formatter()
_is_enabled = logging.Logger.isEnabledFor
_call_handlers = logging.Logger.callHandlers


def keep_logs() -> None:
    """From now on, keep the log records of bodies that run in this process.

    A record is kept as if the level of the root logger were LOG_LEVEL: a logger that has a level of
    its own, or from a logger above it, keeps that. The root logger's own level stays as it is, for
    it decides what the project's handlers get.
    """
    global _level, _is_enabled, _call_handlers
    level = get_settings().LOG_LEVEL
    _level = level if isinstance(level, int) else logging.getLevelNamesMapping()[level]
    if logging.Logger.isEnabledFor is _is_enabled_or_kept:
        return
    # Where others have put theirs in place, as Sentry does, these go on to them.
    _is_enabled = logging.Logger.isEnabledFor
    _call_handlers = logging.Logger.callHandlers
    logging.Logger.isEnabledFor = _is_enabled_or_kept  # type: ignore[method-assign]
    logging.Logger.callHandlers = _call_handlers_and_keep  # type: ignore[method-assign]


def _is_enabled_or_kept(self: logging.Logger, level: int) -> bool:
    return _is_enabled(self, level) or _keeper(self, level) is not None


def _call_handlers_and_keep(self: logging.Logger, record: logging.LogRecord) -> None:
    if _is_enabled(self, record.levelno):
        _call_handlers(self, record)
    context = _keeper(self, record.levelno)
    if context is not None:
        _keep(context, record)


def _keeper(logger: logging.Logger, level: int) -> Context | None:
    """The attempt that keeps records of that logger and level; None where none does."""
    context = _current.get()
    if context is None or level < _least(logger) or logger.name.startswith(NEVER_KEPT):
        return None
    return None if logger.disabled or logger.manager.disable >= level else context


def _least(logger: logging.Logger) -> int:
    each = logger
    while each.parent is not None:
        if each.level:
            return each.level
        each = each.parent
    return _level


def _keep(context: Context, record: logging.LogRecord) -> None:
    try:
        text = _FORMATTER.format(record)
        context._report_line(context._lease_id, record.levelno, record.name, text)
    except Exception:
        logging.Handler().handleError(record)
