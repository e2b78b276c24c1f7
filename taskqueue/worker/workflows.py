"""Moves workflows after the ends that this worker has recorded."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import InterfaceError, InternalError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import Recorded
from taskqueue.core.states import FINISHED
from taskqueue.declarations.workflows.reference_data import MARK
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.late_imports import PAUSE as IMPORTS_PAUSE
from taskqueue.worker.late_imports import LateImports

logger = logging.getLogger("taskqueue.worker")

# A step that lacks more members than this is folded at most so often, in seconds; but not where it
# lacks few for what this worker has ended since: of the last ones each record is folded at once.
WIDE, WIDE_PAUSE, NEARLY = 64, 0.05, 8
# Seconds until another try where another worker was folding the same step.
LOCKED_PAUSE = 0.01
# With so many tasks claimed ahead, ends need not hurry: to advance many workflows takes little more
# time than one. A worker then rests for a multiple of the time that the last advance took.
MANY, REST, LONGEST_REST = 32, 4.0, 0.05
# Seconds until the duties look after what could not be done.
TROUBLE_PAUSE = 1.0
# Steps whose pace is remembered.
MOST_REMEMBERED = 1000


def give_inputs(connection: BaseDatabaseWrapper, exchange: Exchange) -> None:
    """Give claimed tasks of steps the small results that they are to read, in one statement.

    Where that fails, their own processes read them.
    """
    if not any(MARK in row.args or MARK in row.kwargs for row in exchange.claimed):
        return
    # Only here, see `late_imports`.
    from taskqueue.engine.workflows.inputs import with_inputs

    try:
        exchange.claimed = with_inputs(connection, exchange.claimed)
    except Exception:
        if not connection.is_usable():
            raise
        logger.exception("Results of steps not read for claimed tasks")


def ended_steps(recorded: Iterable[Recorded]) -> Counter[int]:
    """Return how many tasks of which steps have ended by this."""
    return Counter(
        row.step_id for row in recorded if row.step_id is not None and row.task_status in FINISHED
    )


@dataclass(slots=True)
class Rest:
    """A pause of a wide step, which was folded a moment ago."""

    until: float
    # Members that had not ended by then; those that this thread has ended since.
    lacking: int
    ended: int = 0

    def is_over(self, now: float) -> bool:
        """Return whether the step is to be folded: it may soon be complete."""
        left = self.lacking - self.ended
        return now >= self.until or left <= max(WIDE, NEARLY * self.ended)


class StepEnds:
    """Folds what one thread has recorded, and advances workflows; what it leaves is the duties'."""

    def __init__(self, imports: LateImports | None = None) -> None:
        self._imports = imports
        self._rests: dict[int, Rest] = {}
        # When to fold again while much is claimed ahead, and the steps that wait for that.
        self._next_at = 0.0
        self._waiting: set[int] = set()

    def take(self, connection: BaseDatabaseWrapper, exchange: Exchange) -> None:
        """Fold the steps of the ends that an exchange has recorded, and tell it what is left.

        Raises OperationalError, InterfaceError and InternalError when the session is in trouble.
        """
        counts = ended_steps(exchange.recorded.values())
        ended = self._waiting | counts.keys()
        if not ended:
            return
        now = time.monotonic()
        for step_id, number in counts.items():
            if step_id in self._rests:
                self._rests[step_id].ended += number
        if self._imports is not None and not self._imports.are_over:
            # Tasks that have nothing to do with workflows do not wait for that.
            self._waiting = ended
            exchange.step_ends_at = now + IMPORTS_PAUSE
            return
        if now < self._next_at and exchange.claimed_ahead >= MANY:
            self._waiting = ended
            # The next record comes sooner: so many tasks ahead are short ones.
            exchange.step_ends_at = self._next_at + LONGEST_REST
            return
        self._waiting = set()
        resting = {id for id in ended if id in self._rests and not self._rests[id].is_over(now)}
        moments = [self._rests[id].until for id in resting]
        try:
            moments += self._fold(connection, ended - resting, exchange, now)
        except (OperationalError, InterfaceError, InternalError):
            self._waiting = ended
            raise
        except Exception:
            logger.exception("Workflows not advanced")
            exchange.has_released = True  # As far as anybody knows.
            exchange.released_queues.add(None)
            moments.append(now + TROUBLE_PAUSE)
        exchange.step_ends_at = min(moments, default=math.inf)
        took = time.monotonic() - now
        self._next_at = now + took + min(REST * took, LONGEST_REST)

    def _fold(
        self, connection: BaseDatabaseWrapper, step_ids: set[int], exchange: Exchange, now: float
    ) -> list[float]:
        """Fold these steps; when what others had locked is to be looked at again."""
        if not step_ids:
            return []
        # Only here, see `late_imports`.
        from taskqueue.engine.workflows.rounds import fold_and_advance

        advanced = fold_and_advance(connection, step_ids)
        folded = advanced.folded
        exchange.released_queues |= advanced.queues
        if any(step.is_due for step in folded):
            exchange.advance_seconds = time.monotonic() - now
        if len(self._rests) > MOST_REMEMBERED:
            self._rests.clear()
        for step in folded:
            exchange.has_released = exchange.has_released or step.is_due
            if step.lacking > WIDE:
                self._rests[step.step_id] = Rest(now + WIDE_PAUSE, step.lacking)
            else:
                self._rests.pop(step.step_id, None)
        return [now + LOCKED_PAUSE] if len(folded) < len(step_ids) else []
