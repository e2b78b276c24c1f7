"""The parent's side of the guardian: extend the time that each child may live."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from taskqueue.worker import guardian
from taskqueue.worker.guardian import MESSAGE
from taskqueue.worker.jobs import Job

logger = logging.getLogger("taskqueue.worker")

RETRY = 1.0  # Seconds between two tries to start a guardian.
LONGEST_END = 5.0  # Seconds after which a frozen guardian, which does not end, is killed.


class Watchdog:
    """Tells the guardian until when each child may live. Any thread may use it; it never blocks.

    A guardian that is gone is replaced; until there is a new one, no task may be claimed. Raises
    OSError if the first cannot be started.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadlines: dict[int, float] = {}
        self._process: subprocess.Popen[bytes] | None = self._started()
        self._retry_at = 0.0

    @property
    def is_there(self) -> bool:
        """Whether there is a guardian, as far as is known."""
        return self._process is not None

    def live_until(self, process: int, deadline: float) -> None:
        """Let a child live until that time of the monotonic clock."""
        with self._lock:
            self._deadlines[process] = deadline
            self._tell(process, deadline)

    def forget(self, process: int) -> None:
        """Forget a child that is gone: its process id may soon be reused."""
        with self._lock:
            if self._deadlines.pop(process, None) is not None:
                self._tell(process, 0.0)

    def ensure(self, now: float) -> None:
        """Start a guardian if there is none."""
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self._give_up("it ended")
            if self._process is None and now >= self._retry_at:
                self._retry_at = now + RETRY
                self._replace()

    def close(self) -> None:
        """End the guardian, and with it every remaining child."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(LONGEST_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _tell(self, process: int, deadline: float) -> None:
        if self._process is None:
            return
        try:
            _write(self._process, MESSAGE.pack(process, deadline))
        except OSError as error:
            self._give_up(error)
            self._replace()

    def _give_up(self, why: object) -> None:
        """Kill a guardian that no longer reads: at the end of its input it kills the children."""
        process, self._process = self._process, None
        assert process is not None
        assert process.stdin is not None
        logger.error("Guardian lost, another is started error=%s", why)
        process.kill()
        process.wait()
        process.stdin.close()

    def _replace(self) -> None:
        """Start another guardian, and tell it every deadline."""
        try:
            process = self._started()
        except OSError as error:
            logger.error("No guardian, nothing is claimed error=%s", error)
            return
        try:
            for known, until in self._deadlines.items():
                _write(process, MESSAGE.pack(known, until))
        except OSError:
            process.kill()
            process.wait()
            return
        self._process = process

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


def _write(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    os.write(process.stdin.fileno(), data)


# The deadline of a child without jobs: it can do no harm, and lives as long as its parent.
NEVER = float("inf")
NEAR = 1.0  # Seconds before a deadline at which it is checked whether the deadline must stay.


class ChildDeadline:
    """Until when the guardian lets one child live. The main thread and the heartbeat use it."""

    def __init__(
        self, process_id: int, held: dict[int, Job], stuck: dict[int, Job], watchdog: Watchdog
    ) -> None:
        self.at = NEVER
        self._process_id = process_id
        self._held = held
        self._stuck = stuck
        self._watchdog = watchdog
        self._lock = threading.Lock()
        self._has_ended = False
        watchdog.live_until(process_id, NEVER)

    def hold(self, jobs: Sequence[Job]) -> bool:
        """Add jobs to those held. If it is too late for one of them, add none and return False.

        The guardian knows until when they are safe before the child knows of them. If this process
        is frozen in between, the guardian acts, or the second look at the clock notices it.
        """
        safe_until = min(job.safe_until for job in jobs)
        with self._lock:
            if time.monotonic() >= safe_until:
                return False
            self._move(min(self.at, safe_until))
            if time.monotonic() >= safe_until:
                return False
            for job in jobs:
                self._held[job.lease_id] = job
        return True

    def extend(self, until: float) -> None:
        """Let the child live until that time, if the jobs that it holds allow it."""
        with self._lock:
            if self._held or self._stuck:
                self._move(min(until, self._safe_until()))
            else:
                self._move(NEVER)

    def relax(self, now: float) -> None:
        """Move a near deadline that was set for a job which has ended since."""
        if self.at - now < NEAR and not self._stuck:
            with self._lock:
                self._move(self._safe_until())

    def end(self) -> None:
        """Forget a child that is gone: its process id may soon be reused."""
        with self._lock:
            self._has_ended = True
        self._watchdog.forget(self._process_id)

    def _safe_until(self) -> float:
        return min((job.safe_until for job in list(self._held.values())), default=NEVER)

    def _move(self, until: float) -> None:
        # After its last moment a child is being killed.
        if time.monotonic() < self.at != until and not self._has_ended:
            self.at = until
            self._watchdog.live_until(self._process_id, until)
