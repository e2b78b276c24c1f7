"""The parent's side of the template, and of the children that are copies of it."""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

from taskqueue.worker.template import (
    LARGEST_MESSAGE,
    READY,
    REFUSED,
    STALE,
    be_template,
    obstacle_to_copies,
)

logger = logging.getLogger("taskqueue.worker")

CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
LONGEST_ANSWER = 3.0  # Seconds within which a child must be made.


class Template:
    """The parent's side of the template. Only the main thread uses it."""

    def __init__(self) -> None:
        self.is_loading = False
        self.socket: socket.socket | None = None
        self._process: ForkedProcess | subprocess.Popen[bytes] | None = None
        self._refused = ""
        self._is_lost = False  # Whether another must be started, which was not possible yet.

    def begin(self) -> None:
        """Copy this process before it has threads of its own; the copy loads the tasks."""
        if sys.platform != "linux":
            return
        if obstacle := obstacle_to_copies():
            self._refused = obstacle
            return
        parent = os.getpid()
        # Existing objects are never garbage, so the collector need not write to their pages, which
        # both processes share.
        gc.freeze()
        sys.stdout.flush()
        sys.stderr.flush()
        with self._opened() as theirs:
            pid = os.fork()
            if not pid:
                assert self.socket is not None
                self.socket.close()
                os.setsid()
                be_template(theirs, parent)
        self._process = ForkedProcess(pid)

    def _begin_clean(self) -> None:
        """Start a process that imports the project's current code."""
        with self._opened() as theirs:
            setup = {
                "socket": theirs.fileno(),
                "parent": os.getpid(),
                "path": sys.path,
                "argv0": sys.argv[0],
            }
            self._process = subprocess.Popen(
                [sys.executable, "-m", "taskqueue.worker.template"],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "TASKQUEUE_TEMPLATE": json.dumps(setup)},
                start_new_session=True,
            )

    def _opened(self) -> socket.socket:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(LONGEST_ANSWER)
        self.is_loading = True
        return theirs

    def hear(self) -> None:
        """Read the template's message that it has loaded the tasks. Waits for it."""
        self.is_loading = False
        answer = self._receive()
        if answer.startswith(REFUSED):
            self._refused = answer.removeprefix(REFUSED).decode()
        if answer != READY:
            self.close()

    def fork(self, setup: dict[str, Any], files: list[int]) -> ForkedProcess | None:
        """Make a child with this setup and these open files; None if it cannot be made.

        Raises OSError if the system has no room for another template, which is then due.
        """
        if self._refused:
            logger.info("Each child imports the project on its own reason=%s", self._refused)
            self._refused = ""
        if self._is_lost:
            self._restart()
        if self.socket is None or self.is_loading:
            return None
        answer = b""
        # A child whose own parent has ended becomes this process's child.
        _set_subreaper(1)
        with suppress(OSError):
            socket.send_fds(self.socket, [json.dumps(setup).encode()], files)
            answer = self._receive()
        _set_subreaper(0)
        if answer.isdigit():
            process = ForkedProcess(int(answer))
            if process.is_own:
                return process
            self.close()
            self._refused = "the kernel gives them to another process"
            return None
        if answer == STALE:
            logger.info("Code changed on disk, new children load it")
        else:
            logger.warning("Template of children lost, another is started")
        self._restart()
        return None

    def _restart(self) -> None:
        self._is_lost = True
        self.close()
        try:
            self._begin_clean()
        except OSError:
            self.close()
            raise
        self._is_lost = False

    def close(self) -> None:
        """End the template. Its copies go on."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        self.is_loading = False

    @property
    def makes_copies(self) -> bool:
        """Whether the next child will be a copy of it."""
        return self.socket is not None and not self.is_loading

    def _receive(self) -> bytes:
        assert self.socket is not None
        with suppress(OSError):
            return self.socket.recv(LARGEST_MESSAGE)
        return b""


class ForkedProcess:
    """A child of this process that `subprocess` has not started; used like a `Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.is_own = True
        self._code: int | None = None
        self.poll()

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while it runs."""
        if self._code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self.is_own, self._code = False, 0
            else:
                self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once it has ended. Raises `TimeoutExpired`."""
        ends_at = None if timeout is None else time.monotonic() + timeout
        pause = 0.0005
        while (code := self.poll()) is None:
            if timeout is not None and ends_at is not None and time.monotonic() > ends_at:
                raise subprocess.TimeoutExpired("taskqueue.worker.child", timeout)
            time.sleep(pause)
            pause = min(0.05, pause * 2)
        return code

    def kill(self) -> None:
        """Kill it. Its process id is not reused until its end has been polled."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _set_subreaper(value: int) -> None:
    ctypes.CDLL(None).prctl(CHILD_SUBREAPER, value)
