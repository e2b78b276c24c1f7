"""Advance workflows after the ends that this worker has recorded."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import InterfaceError, InternalError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import Recorded
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.declarations.workflows.reference_data import MARK
from taskqueue.engine.rows import Folded
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.late_imports import PAUSE as IMPORTS_PAUSE
from taskqueue.worker.late_imports import LateImports

logger = logging.getLogger("taskqueue.worker")

# A step that lacks more members than `WIDE` is folded at most once in this many seconds. This does
# not apply if it lacks few compared with those that this worker has ended since: for the last
# members, each record is folded at once.
WIDE, WIDE_PAUSE, NEARLY = 64, 0.05, 8
# A step whose members were all sent is folded more rarely the more members it lacks, because it
# cannot be complete sooner than a maximum number of ends per second allows.
FASTEST, SHORTEST_PAUSE, WIDEST_PAUSE = 40_000, 0.01, 0.5
# Seconds for which ends wait to be folded with the next record; then a request is sent for them.
LATER = 0.005
# With this many tasks claimed ahead, ends need not hurry: advancing many workflows takes little
# more time than advancing one. A worker then pauses for a multiple of the time of the last advance.
MANY, REST, LONGEST_REST = 32, 4.0, 0.05
FAILURES = FINISHED - {TaskStatus.SUCCEEDED}
# Seconds until the duties try again what could not be done.
TROUBLE_PAUSE = 1.0
# The most steps whose pace is remembered.
MOST_REMEMBERED = 1000


def give_inputs(connection: BaseDatabaseWrapper, exchange: Exchange) -> None:
    """Give claimed tasks of steps the small results that they read, in one statement.

    If this fails, their own processes read them.
    """
    if not any(MARK in row.args or MARK in row.kwargs for row in exchange.claimed):
        return
    # Imported here, see `late_imports`.
    from taskqueue.engine.workflows.inputs import with_inputs

    try:
        exchange.claimed = with_inputs(connection, exchange.claimed)
    except Exception:
        if not connection.is_usable():
            raise
        logger.exception("Results of steps not read for claimed tasks")


def ended_steps(recorded: Iterable[Recorded]) -> Counter[int]:
    """Return how many tasks of each step have ended by these records."""
    return Counter(
        row.step_id for row in recorded if row.step_id is not None and row.task_status in FINISHED
    )


@dataclass(slots=True)
class Rest:
    """A pause of a wide step, which was folded a moment ago."""

    until: float
    # Members that had not ended by then, and those that this thread has ended since.
    lacking: int
    ended: int = 0

    def is_over(self, now: float) -> bool:
        """Return whether to fold the step, because it may soon be complete."""
        left = self.lacking - self.ended
        return now >= self.until or left <= max(WIDE, NEARLY * self.ended)


def _pause(step: Folded) -> float:
    if step.is_due:
        return WIDE_PAUSE
    return min(WIDEST_PAUSE, max(SHORTEST_PAUSE, step.lacking / FASTEST))


class StepEnds:
    """Folds recorded ends and advances workflows; anything left is done by the duties.

    The worker's threads share it: one of them folds at a time.
    """

    def __init__(self, imports: LateImports | None = None) -> None:
        self._imports = imports
        self._lock = threading.Lock()
        self._rests: dict[int, Rest] = {}
        # When to fold again while many tasks are claimed ahead.
        self._next_at = 0.0
        # Steps with ends that are still to be counted, and those that others had locked last time.
        self._waiting: set[int] = set()
        self._refused: set[int] = set()
        # When requests must fold even if they have recorded no end.
        self._fold_at = math.inf

    def take(self, connection: BaseDatabaseWrapper, exchange: Exchange) -> None:
        """Fold the steps whose ends an exchange has recorded, and tell it what is left.

        Raises OperationalError, InterfaceError and InternalError when the session is in trouble.
        """
        counts = ended_steps(exchange.recorded.values())
        if not (counts or time.monotonic() >= self._fold_at):
            return
        if not self._lock.acquire(blocking=bool(counts)):
            return
        try:
            self._take(connection, exchange, counts)
        finally:
            self._lock.release()
        exchange.fold_at = self._fold_at

    def _take(
        self, connection: BaseDatabaseWrapper, exchange: Exchange, counts: Counter[int]
    ) -> None:
        self._waiting |= counts.keys()
        now = time.monotonic()
        for step_id, number in counts.items():
            if step_id in self._rests:
                self._rests[step_id].ended += number
        for row in exchange.recorded.values():
            # A failure may decide something however many members are lacking.
            if row.step_id in self._rests and row.task_status in FAILURES:
                rest = self._rests[row.step_id]
                rest.until = min(rest.until, now + WIDE_PAUSE)
        if self._imports is not None and not self._imports.have_workflows:
            # Tasks outside of workflows do not wait for this.
            self._fold_at = now + IMPORTS_PAUSE
            return
        if now < self._next_at and exchange.claimed_ahead >= MANY:
            # The next record comes sooner, because so many tasks ahead are short ones.
            self._fold_at = self._next_at + LONGEST_REST
            return
        rests = self._rests
        resting = {id for id in self._waiting if id in rests and not rests[id].is_over(now)}
        self._fold_at = now  # If the session is in trouble, the next request tries again.
        self._fold(connection, self._waiting - resting, exchange, now)
        took = time.monotonic() - now
        self._next_at = now + took + min(REST * took, LONGEST_REST)
        moments = (rests[id].until if id in rests else now for id in self._waiting)
        self._fold_at = LATER + min(moments, default=math.inf)

    def _fold(
        self, connection: BaseDatabaseWrapper, step_ids: set[int], exchange: Exchange, now: float
    ) -> None:
        """Fold these steps.

        Locked ones wait for the next record, and the second time for the duties.
        """
        if not step_ids:
            return
        # Imported here, see `late_imports`.
        from taskqueue.engine.workflows.rounds import fold_and_advance

        try:
            advanced = fold_and_advance(connection, step_ids)
        except (OperationalError, InterfaceError, InternalError):
            raise
        except Exception:
            logger.exception("Workflows not advanced")
            self._waiting -= step_ids
            exchange.has_released = True  # As far as is known.
            exchange.released_queues.add(None)
            exchange.step_ends_at = now + TROUBLE_PAUSE
            return
        folded = advanced.folded
        exchange.released_queues |= advanced.queues
        if any(step.is_due for step in folded):
            exchange.advance_seconds = time.monotonic() - now
        if len(self._rests) > MOST_REMEMBERED:
            self._rests.clear()
        for step in folded:
            exchange.has_released = exchange.has_released or step.is_due
            if step.lacking > WIDE:
                self._rests[step.step_id] = Rest(now + _pause(step), step.lacking)
            else:
                self._rests.pop(step.step_id, None)
        refused = step_ids - {step.step_id for step in folded}
        if refused & self._refused:
            exchange.step_ends_at = now + LATER
        again = refused - self._refused
        for id in again:
            self._rests.pop(id, None)
        self._waiting = self._waiting - step_ids | again
        self._refused = again
