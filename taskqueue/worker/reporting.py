"""What a child tells its parent of running bodies: progress and log lines, never blocking them."""

from __future__ import annotations

import os
import socket
import threading
import time

from taskqueue.declarations.payload import storable
from taskqueue.worker import frames
from taskqueue.worker.frames import Frame, pack
from taskqueue.worker.pending_writes import Line

FLUSH_INTERVAL = 0.25
"""Seconds between two reports of what a running body says."""
LONGEST_LINE = 8192
LONGEST_MESSAGE = 1000


class Reports:
    """What bodies have said and nobody has taken yet."""

    def __init__(self, *, max_log: int) -> None:
        self._max_log = max_log
        self._buffering = threading.Lock()
        self._lines: list[Line] = []
        self._progress: dict[int, tuple[float, str]] = {}
        self._log_sizes: dict[int, int] = {}
        self.has_reports = threading.Event()

    def take(self) -> tuple[list[Line], dict[int, tuple[float, str]]]:
        """The lines, and the latest progress by lease."""
        with self._buffering:
            lines, self._lines = self._lines, []
            progress, self._progress = self._progress, {}
            self.has_reports.clear()
        return lines, progress

    def report_progress(self, lease_id: int, percent: float, message: str) -> None:
        """Keep the latest progress of an attempt."""
        with self._buffering:
            self._progress[lease_id] = percent, storable(message, limit=LONGEST_MESSAGE)
        self.has_reports.set()

    def report_line(self, lease_id: int, level: int, logger: str, message: str) -> None:
        """Keep a line of an attempt, as far as its share of the log goes."""
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
        """An attempt is over."""
        if self._log_sizes:
            with self._buffering:
                self._log_sizes.pop(lease_id, None)


class Channel(Reports):
    """The way to the parent. A body only ever touches a buffer; threads of the child send."""

    def __init__(self, sock: socket.socket, *, max_log: int) -> None:
        super().__init__(max_log=max_log)
        self._socket = sock
        self._sending = threading.Lock()
        os.register_at_fork(after_in_child=self._renew_locks)

    def _renew_locks(self) -> None:
        """In a copy of the child: what another thread held at the fork is never released there."""
        self._sending = threading.Lock()
        self._buffering = threading.Lock()
        self.has_reports = threading.Event()

    def send(self, frame: Frame) -> None:
        """Send a frame, behind all that bodies have said before it."""
        with self._sending:
            data = pack(frame)
            if self._lines or self._progress:
                data = self._take_reports() + data
            self._socket.sendall(data)

    def flush(self) -> None:
        """Send what bodies have said."""
        with self._sending:
            if data := self._take_reports():
                self._socket.sendall(data)

    def _take_reports(self) -> bytes:
        lines, progress = self.take()
        data = b""
        if lines:
            data += pack((frames.LINES, lines))
        if progress:
            reports = [(lease, percent, text) for lease, (percent, text) in progress.items()]
            data += pack((frames.PROGRESS, reports))
        return data


def flush_for_ever(channel: Channel) -> None:
    """Report what running bodies say, now and then."""
    while True:
        channel.has_reports.wait()
        time.sleep(FLUSH_INTERVAL)
        try:
            channel.flush()
        except OSError:
            return
