"""One turn of the duties, and a duty that has its turn every so many seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.forecast import Forecast

# Seconds until another look at what is due and could not be served, such as what is locked.
OVERDUE_PAUSE = 0.1


@dataclass
class Turn:
    """One turn of all duties, and what came of it."""

    connection: BaseDatabaseWrapper
    now: float  # By the monotonic clock.
    forecast: Forecast
    stagger: float  # How much later, in seconds, this worker serves what comes due.
    has_changed: bool = False  # Whether a task moved, or a schedule, or an operation.
    may_claim: bool = False  # Whether there may be something to claim because of it.

    def wait_for(self, seconds: float | None) -> float | None:
        """Seconds until the turn for something that is due in so many seconds."""
        if seconds is None:
            return None
        return (seconds if seconds > 0 else OVERDUE_PAUSE) + self.stagger


@dataclass
class Timed:
    """A duty that is served every so many seconds, sooner `again` where it has left something."""

    run: Callable[[BaseDatabaseWrapper], object]
    every: float
    again: float = 10.0
    # Of the worker's time, at most, while it leaves something each time.
    share: float = 1.0
    next_at: float = 0.0

    def is_due(self, turn: Turn) -> bool:
        """Whether it is time to run it."""
        return turn.now >= self.next_at

    def step(self, turn: Turn) -> float | None:
        """Run it once it is time."""
        if self.is_due(turn):
            # First: one that fails must not fail with every turn.
            self.next_at = turn.now + self.every
            began = time.monotonic()
            if self.run(turn.connection):
                took = time.monotonic() - began
                self.next_at = turn.now + min(self.every, max(self.again, took / self.share))
        return self.again if self.next_at <= turn.now + self.again else None
