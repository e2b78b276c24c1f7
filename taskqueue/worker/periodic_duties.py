"""Periodic duties, such as pruning, merging counts and looking for lost workers."""

from __future__ import annotations

import logging
import time
from collections import deque
from contextlib import AbstractContextManager, nullcontext

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.log_text import one_line
from taskqueue.engine import pruning, rollups, wedged, workers
from taskqueue.engine.connections import transaction
from taskqueue.engine.control.pauses import HAS_ENDED_PAUSES, lift_pauses
from taskqueue.engine.depths import HAS_OLD_DEPTHS, IS_UNRECORDED, record_depths
from taskqueue.engine.events.declaring import HAS_HANDLERS, end_undeclared
from taskqueue.engine.events.pruning import HAS_EVENTS, prune_events
from taskqueue.engine.limits.sweeping import HAS_LIMIT_ROWS, HAS_LIMITED, Sweep, prune_limits
from taskqueue.engine.schedules.syncing import rest_undeclared
from taskqueue.engine.search_owners import SearchPruning
from taskqueue.engine.sessions import owns_session
from taskqueue.engine.statement import Statement
from taskqueue.engine.sums import HAS_COUNTS, merge_counts
from taskqueue.engine.surplus import HAS_COUNTED
from taskqueue.engine.workflows.pruning import NEXT_PRUNE, prune_workflows
from taskqueue.engine.workflows.reconciling import NEXT_RECOUNT, reconcile
from taskqueue.worker.duty_turn import Timed, Turn

logger = logging.getLogger("taskqueue.worker")


class PeriodicDuties:
    """The periodic duties of one worker, served in turns of limited duration."""

    def __init__(self, seconds: float, more: tuple[Timed, ...] = ()) -> None:
        self._seconds = seconds
        self._duties = (*_all(), *more)
        # The duties still to be served in this round: those that were due when it began.
        self._left: deque[Timed] = deque()

    @property
    def is_cut(self) -> bool:
        """Whether the last turn left some to the next."""
        return bool(self._left)

    @property
    def looks(self) -> list[Statement]:
        """The looks of all duties."""
        return [look for duty in self._duties for look in duty.looks]

    def left_out(self, now: float) -> list[Statement]:
        """Return the looks of the duties that are not due."""
        return [look for duty in self._duties if not duty.is_due(now) for look in duty.looks]

    def step(self, turn: Turn) -> float | None:
        """Serve the duties that are due, until the time is over; at least one.

        A duty that has left something waits for the next round, so that each round ends.
        """
        until = time.monotonic() + self._seconds
        if not self._left:
            self._left.extend(duty for duty in self._duties if duty.is_due(turn.now))
        while self._left:
            self._left.popleft().step(turn)
            if self._left and time.monotonic() > until:
                return 0.0
        waits = (duty.wait(turn.now) for duty in self._duties)
        return min((wait for wait in waits if wait is not None), default=None)


def _all() -> tuple[Timed, ...]:
    """Return the duties in the order of their first turn."""
    return (
        Timed(prune_tasks, every=10, again=0.1, looks=(pruning.NEXT_TASK, HAS_COUNTED)),
        Timed(prune_workflows, every=10, again=0.1, looks=(NEXT_PRUNE,)),
        Timed(reconcile, every=10, again=0.5, share=0.01, looks=(NEXT_RECOUNT,)),
        Timed(Sweep().step, every=10, again=0.1, looks=(HAS_LIMITED,)),
        Timed(prune_limits, every=60, again=0.1, looks=(HAS_LIMIT_ROWS,)),
        Timed(prune_history, every=3600),
        Timed(SearchPruning().step, every=3600, again=0.1),
        Timed(prune_fine, every=60, again=0.1),
        Timed(prune_events, every=60, again=0.1, looks=(HAS_EVENTS,)),
        Timed(merge_rollups, every=60),
        Timed(merge_counts, every=60, looks=(HAS_COUNTS,)),
        Timed(record_depths, every=20, looks=(IS_UNRECORDED, *HAS_OLD_DEPTHS)),
        Timed(mark_wedged, every=60, looks=(wedged.HAS_RUNNING,)),
        Timed(rest_schedules, every=60),
        Timed(end_undeclared, every=60, looks=(HAS_HANDLERS,)),
        Timed(lift_pauses, every=30, looks=(HAS_ENDED_PAUSES,)),
        Timed(call_roll, every=15, looks=(workers.HAS_SILENT,)),
    )


def _short_transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    """Return a transaction for single statements, which need none on the worker's own session."""
    return nullcontext() if owns_session(connection) else transaction(connection)


def prune_tasks(connection: BaseDatabaseWrapper) -> bool:
    """Delete tasks whose retention is over, or that are surplus for their definition."""
    with _short_transaction(connection):
        return pruning.prune_tasks(connection) == pruning.BATCH


def prune_history(connection: BaseDatabaseWrapper) -> bool:
    """Delete other rows that are too old."""
    return max(history.prune(connection) for history in pruning.HISTORIES.values()) == pruning.BATCH


def prune_fine(connection: BaseDatabaseWrapper) -> bool:
    """Delete occurrences of rules that have several within a second."""
    return pruning.prune_fine_occurrences(connection) == pruning.BATCH


def merge_rollups(connection: BaseDatabaseWrapper) -> bool:
    """Merge counts into longer spans and into the totals."""
    return rollups.merge_rollups(connection) >= rollups.BATCH


def mark_wedged(connection: BaseDatabaseWrapper) -> None:
    """Mark attempts that have given no sign of life for far longer than usual."""
    with _short_transaction(connection):
        wedged.mark_wedged(connection)


def call_roll(connection: BaseDatabaseWrapper) -> None:
    """Mark workers that were not seen for a lease's time, and delete those gone for a day."""
    if lost := workers.mark_lost(connection):
        logger.warning("Workers lost count=%s", lost)
        rest_schedules(connection)
    workers.forget_gone(connection)


def rest_schedules(connection: BaseDatabaseWrapper) -> None:
    """Deactivate schedules that no code declares any more: a worker may have ended unnoticed."""
    for name in rest_undeclared(connection):
        logger.warning("No code declares the schedule any more schedule=%s", one_line(name))
