"""The parent's side of the guardian."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading

from taskqueue.worker import guardian
from taskqueue.worker.guardian import MESSAGE

logger = logging.getLogger("taskqueue.worker")


class Watchdog:
    """Says until when each child may live. Any thread may use it; it never blocks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadlines: dict[int, float] = {}
        self._process = self._started()

    def live_until(self, process: int, deadline: float) -> None:
        """Let a child live until that moment of the monotonic clock."""
        with self._lock:
            self._deadlines[process] = deadline
            self._tell(process, deadline)

    def forget(self, process: int) -> None:
        """A child is gone; its number may soon be another's."""
        with self._lock:
            if self._deadlines.pop(process, None) is not None:
                self._tell(process, 0.0)

    def close(self) -> None:
        """End the guardian, and with it every child that is left."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _tell(self, process: int, deadline: float) -> None:
        try:
            self._write(MESSAGE.pack(process, deadline))
        except OSError as error:
            logger.error("Guardian lost, another is started error=%s", error)
            self._process.kill()
            self.close()
            self._process = self._started()
            for known, until in self._deadlines.items():
                self._write(MESSAGE.pack(known, until))

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), data)

    @staticmethod
    def _started() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guardian.__file__],
            stdin=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        return process
