"""Send progress and log lines of running bodies to the parent, without blocking."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable

from taskqueue.conf import get_settings
from taskqueue.declarations.payload import storable
from taskqueue.worker import frames
from taskqueue.worker.bodies.context import Context, _current
from taskqueue.worker.frames import Frame, Line, Said, pack

FLUSH_INTERVAL = 0.25  # Seconds between two reports of a running body.
LONGEST_LINE = 8192
LONGEST_MESSAGE = 1000
NEVER_KEPT = ("django.tasks", "django_tasks", "django.db.backends", "taskqueue.worker")
_level = logging.INFO
_FORMATTER = logging.Formatter()
_is_enabled = logging.Logger.isEnabledFor
_call_handlers = logging.Logger.callHandlers


class Reports:
    """Progress and log lines that have not been sent yet."""

    def __init__(self, *, max_log: int) -> None:
        self._max_log = max_log
        self._buffering = threading.Lock()
        self._lines: list[Line] = []
        self._progress: dict[int, Said] = {}
        self._log_sizes: dict[int, int] = {}
        self.has_reports = threading.Event()
        # Called with the lease of a body that reports progress.
        self.on_progress: Callable[[int], object] = lambda lease_id: None

    def take(self) -> tuple[list[Line], dict[int, Said]]:
        """Return the lines, and the latest progress by lease."""
        with self._buffering:
            lines, self._lines = self._lines, []
            progress, self._progress = self._progress, {}
            self.has_reports.clear()
        return lines, progress

    def report_progress(
        self, lease_id: int, percent: float, message: str, detail: str | None
    ) -> None:
        """Keep the latest progress of an attempt; the detail is JSON text."""
        with self._buffering:
            self._progress[lease_id] = percent, storable(message, limit=LONGEST_MESSAGE), detail
        self.on_progress(lease_id)
        self.has_reports.set()

    def report_line(self, lease_id: int, level: int, logger: str, message: str) -> None:
        """Keep a line of an attempt, if it is within the attempt's share of the log."""
        message = storable(message, limit=LONGEST_LINE)
        level = min(max(level, 0), 32767)
        with self._buffering:
            size = self._log_sizes.get(lease_id, 0)
            if size > self._max_log:
                return
            size += len(message) + 1
            self._log_sizes[lease_id] = size
            if size > self._max_log:
                message = f"… [log cut at {self._max_log} bytes]"
            self._lines.append(
                (lease_id, time.monotonic(), level, storable(logger, limit=255), message)
            )
        self.has_reports.set()

    def forget(self, lease_id: int) -> None:
        """Drop the counts of an attempt that has ended."""
        if self._log_sizes:
            with self._buffering:
                self._log_sizes.pop(lease_id, None)


class Channel(Reports):
    """Sends to the parent. Bodies only write to a buffer; threads of the child send it."""

    def __init__(self, sock: socket.socket, *, max_log: int) -> None:
        super().__init__(max_log=max_log)
        self._socket = sock
        self._sending = threading.Lock()
        os.register_at_fork(after_in_child=self._renew_locks)

    def _renew_locks(self) -> None:
        """Renew the locks in a fork of the child, where other threads never release theirs."""
        self._sending = threading.Lock()
        self._buffering = threading.Lock()
        self.has_reports = threading.Event()

    def send(self, *own: Frame) -> None:
        """Send the reports of bodies, and then these frames."""
        with self._sending:
            data = b"".join(map(pack, own))
            if self.has_reports.is_set():
                lines, progress = self.take()
                data = pack((frames.LINES, lines)) + pack((frames.PROGRESS, progress)) + data
            self._socket.sendall(data)


def flush_for_ever(channel: Channel) -> None:
    """Send the reports of running bodies at intervals."""
    while True:
        channel.has_reports.wait()
        time.sleep(FLUSH_INTERVAL)
        try:
            channel.send()
        except OSError:
            return


def keep_logs() -> None:
    """From now on, keep the log records of bodies that run in this process.

    A record is kept as if the level of the root logger were LOG_LEVEL. A logger with its own level,
    or with one from a parent logger, keeps that. The root logger's own level does not change,
    because it decides what the project's handlers get.
    """
    global _level, _is_enabled, _call_handlers
    level = get_settings().LOG_LEVEL
    _level = level if isinstance(level, int) else logging.getLevelNamesMapping()[level]
    if logging.Logger.isEnabledFor is _is_enabled_or_kept:
        return
    # If others, such as Sentry, have replaced these functions, theirs are called.
    _is_enabled = logging.Logger.isEnabledFor
    _call_handlers = logging.Logger.callHandlers
    logging.Logger.isEnabledFor = _is_enabled_or_kept  # type: ignore[method-assign]
    logging.Logger.callHandlers = _call_handlers_and_keep  # type: ignore[method-assign]


def _is_enabled_or_kept(self: logging.Logger, level: int) -> bool:
    return _is_enabled(self, level) or _keeper(self, level) is not None


def _call_handlers_and_keep(self: logging.Logger, record: logging.LogRecord) -> None:
    if _is_enabled(self, record.levelno):
        _call_handlers(self, record)
    if (context := _keeper(self, record.levelno)) is not None:
        _keep(context, record)


def _keeper(logger: logging.Logger, level: int) -> Context | None:
    """Return the attempt that keeps records of that logger and level; None if none does."""
    context = _current.get()
    if context is None or level < _least(logger) or logger.name.startswith(NEVER_KEPT):
        return None
    return None if logger.disabled or logger.manager.disable >= level else context


def _least(logger: logging.Logger) -> int:
    ancestor = logger
    while ancestor.parent is not None:
        if ancestor.level:
            return ancestor.level
        ancestor = ancestor.parent
    return _level


def _keep(context: Context, record: logging.LogRecord) -> None:
    try:
        text = _FORMATTER.format(record)
        context._report_line(context._lease_id, record.levelno, record.name, text)
    except Exception:
        logging.Handler().handleError(record)
