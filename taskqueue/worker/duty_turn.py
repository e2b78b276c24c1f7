"""One turn of the duties, and a duty that is served at an interval."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.forecast import Forecast
from taskqueue.engine.statement import Statement

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
    """A duty that is served every so many seconds, sooner `again` where it has left something.

    Where it has looks it is served only if one of them calls for it.
    """

    run: Callable[[BaseDatabaseWrapper], object]
    every: float
    again: float = 10.0
    looks: tuple[Statement, ...] = ()
    # Of the worker's time, at most, while it leaves something each time.
    share: float = 1.0
    next_at: float = 0.0

    def is_due(self, now: float) -> bool:
        """Return whether it is time."""
        return now >= self.next_at

    def step(self, turn: Turn) -> float | None:
        """Run it once it is time."""
        if self.is_due(turn.now):
            # First: one that fails must not fail with every turn.
            self.next_at = turn.now + self.every
            is_called = not self.looks or any(map(turn.forecast.calls_for, self.looks))
            began = time.monotonic()
            if is_called and self.run(turn.connection):
                took = time.monotonic() - began
                self.next_at = turn.now + min(self.every, max(self.again, took / self.share))
        return self.wait(turn.now)

    def wait(self, now: float) -> float | None:
        """Seconds until its next turn, if that comes so soon that somebody has to wait for it."""
        return self.again if self.next_at <= now + self.again else None
