"""Track whether a worker's threads make progress, and whether it can take a task now.

Threads note what they did and when, and a port reads the notes. There is no lock and no statement,
so a port can report a thread that hangs.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http import HTTPStatus

from taskqueue.worker.ports import Answer

LONGEST_TURN = 30.0  # Seconds; the main loop sleeps for at most five.
# Seconds, or two leases if that is longer. A ping ends by itself when the network is silent, but it
# may wait for a lock, and another process would have to wait for it too.
LONGEST_PING = 60.0
JSON = "application/json"


class Vitals:
    """The state of one worker, from before it is registered until its process ends."""

    def __init__(self) -> None:
        self._turned_at: float | None = None
        self._pinged_at: float | None = None  # When the last ping ended, whatever its result.
        # When the last answered ping began; None if a later one failed.
        self._renewed_at: float | None = None
        self._lease_seconds = 0.0
        self._threads: list[threading.Thread] = []
        self._obstacle: Callable[[], str] = lambda: "not registered"
        self._has_ended = False
        # Pings that the database answered, and pings that it did not.
        self.pings = self.pings_failed = 0

    # Written by the worker

    def begin(
        self,
        *,
        lease_seconds: float,
        threads: list[threading.Thread],
        obstacle: Callable[[], str],
    ) -> None:
        """Record that the worker is registered.

        `obstacle` says what keeps it from taking a task; any thread may call it.
        """
        self._lease_seconds = lease_seconds
        self._threads = threads
        self._obstacle = obstacle
        self._turned_at = self._pinged_at = time.monotonic()

    def turned(self, now: float) -> None:
        """Record a turn of the main loop."""
        self._turned_at = now

    def renewed(self, began: float) -> None:
        """Record that a ping that began at `began` was answered."""
        self.pings += 1
        self._renewed_at = began
        self._pinged_at = time.monotonic()

    def failed(self) -> None:
        """Record that a ping could not reach the database."""
        self.pings_failed += 1
        self._renewed_at = None
        self._pinged_at = time.monotonic()

    def delayed(self) -> None:
        """Record that a ping did not get its turn, in a healthy database."""
        self._pinged_at = time.monotonic()

    def end(self) -> None:
        """Record that the worker signs off, so that its threads end as they should."""
        self._has_ended = True

    # Read by a port

    @property
    def is_live(self) -> bool:
        """Whether a new process would be no better; this includes waiting to begin, and ending."""
        if self._turned_at is None or self._pinged_at is None or self._has_ended:
            return True
        now = time.monotonic()
        return (
            now - self._turned_at < LONGEST_TURN
            and now - self._pinged_at < max(LONGEST_PING, 2 * self._lease_seconds)
            and all(thread.is_alive() for thread in self._threads)
        )

    @property
    def is_ready(self) -> bool:
        """Whether it would take a task now, as far as it knows without asking."""
        renewed_at = self._renewed_at
        return (
            renewed_at is not None
            and time.monotonic() - renewed_at < self._lease_seconds
            and not self._has_ended
            and self.is_live
            and not self._obstacle()
        )

    def live(self) -> Answer:
        """The route `/live`."""
        return _answer(self.is_live)

    def ready(self) -> Answer:
        """The route `/ready`."""
        return _answer(self.is_ready)


def _answer(is_well: bool) -> Answer:
    """Answer with only a status, because anybody who reaches the port may ask."""
    status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(status, JSON, json.dumps({"status": "ok" if is_well else "unavailable"}).encode())
