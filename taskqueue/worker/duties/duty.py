"""The parts of a duty: a look, if it has one, and one step."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import transaction
from taskqueue.engine.forecast import Forecast
from taskqueue.engine.sessions import owns_session

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


class Duty(Protocol):
    """Something that every worker does between its own tasks. It is safe to do twice."""

    def step(self, turn: Turn) -> float | None:
        """Do what is due; seconds until the next turn for it, None if it needs none of its own."""


class Timed:
    """A duty that is served every so many seconds, whatever is due."""

    interval: float
    pause: float = 10.0  # Seconds until the next step where the last one left something.

    def __init__(self) -> None:
        self.next_at = 0.0

    def step(self, turn: Turn) -> float | None:
        if turn.now >= self.next_at:
            # First: one that fails must not fail with every turn.
            self.next_at = turn.now + self.interval
            if self.run(turn.connection):
                self.next_at = turn.now + self.pause
        return None

    def run(self, connection: BaseDatabaseWrapper) -> bool:
        """Do it; whether there is more of it."""
        raise NotImplementedError


def short_transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    """One for a duty of single statements; on a session of one's own each is one by itself."""
    return nullcontext() if owns_session(connection) else transaction(connection)
