"""The phases of a shutdown: bodies may finish, then they are ended, then the worker exits."""

from __future__ import annotations

import logging
import math

from taskqueue.worker.coordinator import Coordinator
from taskqueue.worker.database_thread import DatabaseThread

logger = logging.getLogger("taskqueue.worker")

# Seconds to wait for a database that is away, only to record that the worker has ended.
REPORT_TIMEOUT = 3.0
# Seconds for a statement that records outcomes, because it may wait for a lock forever.
WRITE_TIMEOUT = 10.0


class Shutdown:
    """The time in which a worker must end, once it was told to. Only the main thread uses it."""

    def __init__(
        self, coordinator: Coordinator, threads: tuple[DatabaseThread, ...], *, timeout: float
    ) -> None:
        self._coordinator = coordinator
        self._threads = threads
        self._timeout = timeout
        self._began_at: float | None = None
        self._over_at: float | None = None  # When the remaining bodies were ended.
        self._cancelled_at = -math.inf

    def begin(self, now: float) -> None:
        """Record that the worker was told to end."""
        self._began_at = now

    def ends_bodies(self, stops: int, now: float) -> bool:
        """Return whether to end running bodies now: the time is over, or somebody asked again."""
        ends_at = self.ends_at
        if ends_at is None or (stops < 2 and now < ends_at):
            return False
        self._over_at = now
        return True

    @property
    def ends_at(self) -> float | None:
        """When to end running bodies; None if that is done, or nobody told the worker to end."""
        if self._began_at is None or self._over_at is not None:
            return None
        return self._began_at + self._timeout

    def has_waited(self, now: float) -> bool:
        """Return whether the worker waits no longer for a database that is away.

        It waits for as long as bodies may run, and less if it has nothing to write.
        """
        return now >= self._waits_until

    @property
    def cancels_at(self) -> float:
        """When to cancel a statement under way that keeps the worker from ending."""
        if self._began_at is None:
            return math.inf
        return min(map(self._cancels, self._threads))

    def cancel_overdue(self, now: float) -> None:
        """Cancel the statements that keep the worker from ending."""
        overdue = [thread for thread in self._threads if now >= self._cancels(thread)]
        for thread in overdue:
            self._cancelled_at = now
            logger.warning("Statement cancelled, the worker ends without its answer")
            thread.cancel()

    @property
    def _waits_until(self) -> float:
        if self._over_at is not None:
            return self._over_at
        if self._began_at is None or self._coordinator.has_work:
            return math.inf
        is_writing = any(thread.outcomes for thread in self._threads)
        return math.inf if is_writing else self._began_at + REPORT_TIMEOUT

    def _cancels(self, thread: DatabaseThread) -> float:
        if thread.under_way is None:
            return math.inf
        patience = WRITE_TIMEOUT if thread.outcomes else REPORT_TIMEOUT
        # A request between two statements has no effect, so it is repeated.
        again_at = self._cancelled_at + REPORT_TIMEOUT
        return max(self._waits_until, thread.sent_at + patience, again_at)
