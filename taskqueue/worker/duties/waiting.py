"""Serving schedules and operations: what workers do a piece of, and then claim again."""

from __future__ import annotations

import time
from datetime import datetime

from taskqueue.engine.operations import serving as operations
from taskqueue.engine.operations.serving import HAS_OPERATIONS
from taskqueue.engine.schedules.serving import HAS_ENDED_RUNS, NEXT_SCHEDULE, Scheduler
from taskqueue.worker.duties.duty import Turn

# Seconds until the next step where more schedules, or more of their times, are due.
BEHIND_PAUSE = 0.01
# Seconds until another look at operations of which others have all, or that rest.
OPERATION_PAUSE = 0.5


class ServeSchedules:
    """Serves the schedules that are due, and those of which a run has ended."""

    def __init__(self, until: datetime | None) -> None:
        self._until = until
        self._scheduler = Scheduler()

    def step(self, turn: Turn) -> float | None:
        wait, scheduler = turn.forecast.until(NEXT_SCHEDULE), self._scheduler
        if turn.forecast.is_over(NEXT_SCHEDULE) or turn.forecast.holds(HAS_ENDED_RUNS):
            wait = scheduler.step(turn.connection, now=self._until)
            if wait is not None and wait <= 0 and not scheduler.is_kept_out:
                wait = BEHIND_PAUSE
            if scheduler.has_served:
                turn.has_changed = turn.may_claim = True
        return turn.wait_for(wait)


class ServeOperations:
    """Does a chunk of an operation, if there is any.

    It rests for as long as the chunk took, so that claiming and recording have their turn.
    """

    def step(self, turn: Turn) -> float | None:
        if not turn.forecast.holds(HAS_OPERATIONS):
            return None
        started = time.monotonic()
        if not operations.step(turn.connection):
            return OPERATION_PAUSE
        turn.has_changed = turn.may_claim = True
        return time.monotonic() - started
