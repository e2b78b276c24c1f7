"""Deadlines of children: each may live only while the leases that it holds are safe."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from taskqueue.worker.jobs import Job
from taskqueue.worker.watchdog import Watchdog

# The deadline of a child that holds nothing: it can harm nobody, and lives as its parent does.
NEVER = float("inf")
NEAR = 1.0  # Seconds before a deadline, at which it is checked whether it has to be kept.


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
        """Add jobs to those held; False if it is too late for one of them, and none was added.

        The guardian knows until when they are safe before the child knows of them. Where this
        process is frozen on the way, the guardian acts, or the second look at the clock sees it.
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
        """Let the child live until that moment, as far as what it holds allows."""
        with self._lock:
            if self._held or self._stuck:
                self._move(min(until, self._safe_until()))
            else:
                self._move(NEVER)

    def relax(self, now: float) -> None:
        """Move a deadline that is near, and was that of a job which has ended since."""
        if self.at - now < NEAR and not self._stuck:
            with self._lock:
                self._move(self._safe_until())

    def end(self) -> None:
        """Forget a child that is gone: its process id may soon be another's."""
        with self._lock:
            self._has_ended = True
        self._watchdog.forget(self._process_id)

    def _safe_until(self) -> float:
        return min((job.safe_until for job in list(self._held.values())), default=NEVER)

    def _move(self, until: float) -> None:
        # Past its last moment a child is being killed.
        if time.monotonic() < self.at != until and not self._has_ended:
            self.at = until
            self._watchdog.live_until(self._process_id, until)
