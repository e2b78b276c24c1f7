"""One turn of the duties, and a duty that is served at an interval."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.forecast import Forecast
from taskqueue.engine.statement import Statement

# Seconds until another look at due work that could not be done, for example because it is locked.
OVERDUE_PAUSE = 0.1


@dataclass
class Turn:
    """One turn of all duties, and its result."""

    connection: BaseDatabaseWrapper
    now: float  # By the monotonic clock.
    forecast: Forecast
    stagger: float  # By how many seconds this worker delays due work.
    has_changed: bool = False  # Whether a task, a schedule or an operation was changed.
    may_claim: bool = False  # Whether there may be something to claim because of it.

    def wait_for(self, seconds: float | None) -> float | None:
        """Return the seconds until the turn for something due in `seconds`."""
        if seconds is None:
            return None
        return (seconds if seconds > 0 else OVERDUE_PAUSE) + self.stagger


@dataclass
class Timed:
    """A periodic duty, which is served sooner (`again`) if it has left something.

    If it has looks, it is served only if one of them calls for it.
    """

    run: Callable[[BaseDatabaseWrapper], object]
    every: float
    again: float = 10.0
    looks: tuple[Statement, ...] = ()
    # The most of the worker's time that it may take while it leaves something each time.
    share: float = 1.0
    next_at: float = 0.0

    def is_due(self, now: float) -> bool:
        """Return whether it is time."""
        return now >= self.next_at

    def step(self, turn: Turn) -> float | None:
        """Run it if it is due."""
        if self.is_due(turn.now):
            # Set first: a duty that fails must not fail in every turn.
            self.next_at = turn.now + self.every
            is_called = not self.looks or any(map(turn.forecast.calls_for, self.looks))
            began = time.monotonic()
            if is_called and self.run(turn.connection):
                took = time.monotonic() - began
                self.next_at = turn.now + min(self.every, max(self.again, took / self.share))
        return self.wait(turn.now)

    def wait(self, now: float) -> float | None:
        """Return the seconds until its next turn, if that is soon enough to be waited for."""
        return self.again if self.next_at <= now + self.again else None
