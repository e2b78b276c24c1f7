"""Duties that every worker serves between its own tasks. Each is safe to do twice."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import Settings
from taskqueue.core.log_text import one_line
from taskqueue.engine import broadcast, multi_worker, pruning, rollups, wedged, workers
from taskqueue.engine.alerts.serving import NEXT_ALERT
from taskqueue.engine.apart import HAS_APART
from taskqueue.engine.batches.firing import HAS_COLLECTED, fire_due
from taskqueue.engine.connections import transaction
from taskqueue.engine.control.pauses import lift_pauses
from taskqueue.engine.ends import NEXT_END, end_overdue
from taskqueue.engine.events.declaring import end_undeclared
from taskqueue.engine.events.numbering import BATCH as EVENTS_BATCH
from taskqueue.engine.events.numbering import HAS_NEW_EVENTS, WANTED_KINDS, pump
from taskqueue.engine.events.pruning import prune_events
from taskqueue.engine.failures import log_failed_tasks
from taskqueue.engine.forecast import HAS_READY, NEXT_DUE, Forecast, promote
from taskqueue.engine.limits.lanes import HAS_PARTITIONS, NEXT_TOKEN
from taskqueue.engine.limits.sweeping import Sweep, prune_limits
from taskqueue.engine.operations import serving as operations
from taskqueue.engine.operations.serving import NEXT_OPERATION
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.schedules.ends import HAS_ENDED_RUNS
from taskqueue.engine.schedules.serving import NEXT_SCHEDULE, Scheduler
from taskqueue.engine.schedules.syncing import rest_undeclared
from taskqueue.engine.sessions import owns_session
from taskqueue.engine.stays import HAS_STAYS, release_stays
from taskqueue.engine.sums import merge_counts
from taskqueue.engine.takeover import NEXT_EXPIRY
from taskqueue.engine.tally import Tally
from taskqueue.engine.workers import RANK
from taskqueue.engine.workflows import serving as workflows
from taskqueue.engine.workflows.pruning import prune_workflows
from taskqueue.engine.workflows.reconciling import reconcile
from taskqueue.engine.workflows.serving import HAS_WORKFLOWS, NEXT_WORKFLOW_DEADLINE
from taskqueue.worker.presence import Departures
from taskqueue.worker.takeover import TakeOver

logger = logging.getLogger("taskqueue.worker")

PROMOTE_BATCH = 1000
OVERDUE_BATCH = 500
# How much later, in seconds, each next worker serves what comes due; the first is not delayed.
STAGGER, LONGEST_STAGGER = 0.025, 1.0
# Seconds until another look at what is due and could not be served, such as what is locked.
OVERDUE_PAUSE = 0.1
# Seconds until the next step where more schedules, or more of their times, are due.
BEHIND_PAUSE = 0.01
# Seconds until another look at operations of which others have all, or that rest.
OPERATION_PAUSE = 0.5
# Seconds until another look at workflows that others advance, or that stop.
WORKFLOW_PAUSE = 0.25
# Seconds between looks at groups that collect events: of the first worker, of the second.
BATCH_PAUSE, OTHER_BATCH_PAUSE = 1.0, 5.0
# Seconds between looks for new events, while anybody wants any: of the first worker, of others.
PUMP_PAUSE, OTHER_PUMP_PAUSE = 0.1, 1.0
# All that the duties look at, in the statement that promotes.
LOOKS = (
    NEXT_DUE, NEXT_END, NEXT_EXPIRY, NEXT_SCHEDULE, NEXT_OPERATION,
    HAS_READY, HAS_APART, HAS_ENDED_RUNS, RANK,
    HAS_WORKFLOWS, NEXT_WORKFLOW_DEADLINE, HAS_COLLECTED, HAS_PARTITIONS, NEXT_TOKEN,
    WANTED_KINDS, HAS_NEW_EVENTS, NEXT_ALERT, HAS_STAYS,
)  # fmt: skip


class Duties:
    """Serve all duties in turn, and know when one is needed next.

    The step of a duty returns the seconds until its next turn, None if it needs none of its own.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        worker_id: int,
        tally: Tally,
        schedules_until: datetime | None = None,
    ) -> None:
        """`schedules_until`: times of schedules that come later are left to other workers."""
        self._policy = policy = EndPolicy.of(settings)
        self._tally = tally
        self._interval = interval = settings.TAKEOVER_INTERVAL.total_seconds()
        self._worker_id = worker_id
        self._schedules_until = schedules_until
        self._scheduler = Scheduler()
        self._take_over = TakeOver(policy, tally, grace=settings.LEASE_DURATION)
        self._last_broadcast: UUID | None = None
        self._steps: tuple[Callable[[Turn], float | None], ...] = (
            self._end_overdue,
            self._take_over.step,
            Timed(Departures(policy, tally).step, every=interval, again=interval).step,
            self._look_after_broadcasts,
            self._release_stays,
            self._serve_schedules,
            self._serve_operations,
            self._advance_workflows,
            self._fire_batches,
            self._await_tokens,
            self._pump_events,
            self._look_at_alerts,
            Timed(prune_tasks, every=10, again=0.1).step,
            Timed(prune_workflows, every=10, again=0.1).step,
            Timed(reconcile, every=10, again=0.5, share=0.01).step,
            Timed(Sweep().step, every=10, again=0.1).step,
            Timed(prune_limits, every=60, again=0.1).step,
            Timed(prune_history, every=3600).step,
            Timed(prune_fine, every=60, again=0.1).step,
            Timed(prune_events, every=60, again=0.1).step,
            Timed(merge_rollups, every=60).step,
            Timed(merge_counts, every=60).step,
            Timed(mark_wedged, every=60).step,
            Timed(rest_schedules, every=60).step,
            Timed(end_undeclared, every=60).step,
            Timed(lift_pauses, every=30).step,
            Timed(call_roll, every=15).step,
        )
        self._stays = Timed(release_stays, every=interval, again=0.1)
        self._batches_at = 0.0
        # The kinds of events that anybody wanted at the last look, separated by spaces.
        self.wanted_events = ""
        self.next_at = 0.0
        # When the next token comes for a partition that waits for one: for a claim, not a duty.
        self.opens_at = math.inf
        # Whether the last step let a task move, or a schedule, or an operation.
        self.has_changed = False

    def spare(self, now: float) -> None:
        """Take nothing over for one lease's time: the database was away, also for others."""
        self._take_over.spare(now)

    def step(self, connection: BaseDatabaseWrapper, now: float) -> bool:
        """Promote, and serve what is due; whether there may be something to claim."""
        forecast = promote(connection, LOOKS, worker_id=self._worker_id, limit=PROMOTE_BATCH)
        self.has_changed = forecast.promoted > 0
        if forecast.promoted == PROMOTE_BATCH:
            self.next_at = now
            return True
        stagger = min(LONGEST_STAGGER, forecast.number(RANK) * STAGGER)
        turn = Turn(connection, now, forecast, stagger)
        waits = [turn.wait_for(forecast.until(NEXT_DUE)), *(step(turn) for step in self._steps)]
        wait = min((wait for wait in waits if wait is not None), default=self._interval)
        self.next_at = time.monotonic() + min(wait, self._interval)
        self.has_changed = self.has_changed or turn.has_changed
        return forecast.has_ready or forecast.holds(HAS_APART) or turn.may_claim

    def _end_overdue(self, turn: Turn) -> float | None:
        """End tasks whose deadline passed before they ran, or that expired."""
        if turn.forecast.is_over(NEXT_END):
            ended = end_overdue(
                turn.connection, limit=OVERDUE_BATCH, policy=self._policy, tally=self._tally
            )
            failed = [task.task_id for task in ended if task.status == "failed"]
            log_failed_tasks(turn.connection, failed)
            turn.has_changed = turn.has_changed or bool(ended)
        return turn.wait_for(turn.forecast.until(NEXT_END))

    def _look_after_broadcasts(self, turn: Turn) -> float | None:
        """Go through the broadcasts that wait, a batch in each turn."""
        if turn.forecast.holds(HAS_APART):
            released, self._last_broadcast = broadcast.release_gone(
                turn.connection, policy=self._policy, after=self._last_broadcast
            )
            if released:
                logger.warning(
                    "Broadcasts no longer wait for workers that ended parts=%s", released
                )
            overdue = multi_worker.end_overdue(turn.connection, policy=self._policy)
            log_failed_tasks(turn.connection, overdue)
        return None

    def _release_stays(self, turn: Turn) -> float | None:
        """Let others take what waits for a worker that is gone."""
        return self._stays.step(turn) if turn.forecast.holds(HAS_STAYS) else None

    def _serve_schedules(self, turn: Turn) -> float | None:
        """Serve the schedules that are due, and those of which a run has ended."""
        wait, scheduler = turn.forecast.until(NEXT_SCHEDULE), self._scheduler
        if turn.forecast.is_over(NEXT_SCHEDULE) or turn.forecast.holds(HAS_ENDED_RUNS):
            wait = scheduler.step(turn.connection, now=self._schedules_until)
            if wait is not None and wait <= 0 and not scheduler.is_kept_out:
                wait = BEHIND_PAUSE
            if scheduler.has_served:
                turn.has_changed = turn.may_claim = True
        return turn.wait_for(wait)

    def _serve_operations(self, turn: Turn) -> float | None:
        """Do a chunk of an operation, if there is any.

        It rests for as long as the chunk took, so that claiming and recording have their turn.
        """
        if not turn.forecast.is_over(NEXT_OPERATION):
            return turn.wait_for(turn.forecast.until(NEXT_OPERATION))
        started = time.monotonic()
        if not operations.step(turn.connection):
            return OPERATION_PAUSE
        turn.has_changed = turn.may_claim = True
        return time.monotonic() - started

    def _advance_workflows(self, turn: Turn) -> float | None:
        """Do what is left to do of workflows: whoever should have done it may be gone."""
        if turn.forecast.is_over(NEXT_WORKFLOW_DEADLINE):
            turn.has_changed = workflows.end_overdue(turn.connection) or turn.has_changed
        wait = turn.wait_for(turn.forecast.until(NEXT_WORKFLOW_DEADLINE))
        if not turn.forecast.holds(HAS_WORKFLOWS):
            return wait
        if workflows.serve(turn.connection):
            turn.has_changed = turn.may_claim = True
        return WORKFLOW_PAUSE if wait is None else min(wait, WORKFLOW_PAUSE)

    def _fire_batches(self, turn: Turn) -> float | None:
        """Enqueue the batches of groups that are due; the first worker looks once a second.

        The others look more rarely, each in case that those before it do not.
        """
        if not turn.forecast.holds(HAS_COLLECTED):
            return None
        if turn.now >= self._batches_at:
            rank = turn.forecast.number(RANK)
            self._batches_at = turn.now + (BATCH_PAUSE if rank == 0 else OTHER_BATCH_PAUSE + rank)
            if fired := fire_due(turn.connection):
                turn.has_changed = turn.may_claim = True
                logger.debug("Batches enqueued count=%s", len(fired))
                if any(batch.is_full for batch in fired):
                    self._batches_at = turn.now
        return max(self._batches_at - turn.now, OVERDUE_PAUSE)

    def _await_tokens(self, turn: Turn) -> float | None:
        """Let partitions be claimed that have tasks and places, or get a token."""
        until = turn.forecast.until(NEXT_TOKEN)
        self.opens_at = math.inf if until is None else time.monotonic() + until
        if turn.forecast.holds(HAS_PARTITIONS) or (until is not None and until <= 0):
            turn.may_claim = True
        return None

    def _pump_events(self, turn: Turn) -> float | None:
        """Number new events, with what they cause; the first worker looks most often."""
        self.wanted_events = turn.forecast.text(WANTED_KINDS)
        if not (self.wanted_events or turn.forecast.holds(HAS_NEW_EVENTS)):
            return None
        if turn.forecast.holds(HAS_NEW_EVENTS):
            number = pump(turn.connection)
            turn.may_claim = turn.may_claim or number > 0
            if number == EVENTS_BATCH:
                return BEHIND_PAUSE
        rank = turn.forecast.number(RANK)
        return PUMP_PAUSE if rank == 0 else OTHER_PUMP_PAUSE + turn.stagger

    def _look_at_alerts(self, turn: Turn) -> float | None:
        """Look at the alert rules that are due."""
        if not turn.forecast.is_over(NEXT_ALERT):
            return turn.wait_for(turn.forecast.until(NEXT_ALERT))
        # Only where there are rules: what judges them is much to import.
        from taskqueue.alerts.duty import look

        if look(turn.connection):
            turn.has_changed = turn.may_claim = True
        return None


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

    def step(self, turn: Turn) -> float | None:
        """Run it once it is time."""
        if turn.now >= self.next_at:
            # First: one that fails must not fail with every turn.
            self.next_at = turn.now + self.every
            began = time.monotonic()
            if self.run(turn.connection):
                took = time.monotonic() - began
                self.next_at = turn.now + min(self.every, max(self.again, took / self.share))
        return self.again if self.next_at <= turn.now + self.again else None


def _short_transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    """One for a duty of single statements; on a session of one's own each is one by itself."""
    return nullcontext() if owns_session(connection) else transaction(connection)


def prune_tasks(connection: BaseDatabaseWrapper) -> bool:
    """Delete tasks whose retention is over."""
    with _short_transaction(connection):
        return pruning.prune_tasks(connection) == pruning.BATCH


def prune_history(connection: BaseDatabaseWrapper) -> bool:
    """Delete what else is too old."""
    return max(history.prune(connection) for history in pruning.HISTORIES.values()) == pruning.BATCH


def prune_fine(connection: BaseDatabaseWrapper) -> bool:
    """Delete occurrences of rules that have many within a second."""
    return pruning.prune_fine_occurrences(connection) == pruning.BATCH


def merge_rollups(connection: BaseDatabaseWrapper) -> bool:
    """Merge counts into longer spans and into the totals."""
    return rollups.merge_rollups(connection) >= rollups.BATCH


def mark_wedged(connection: BaseDatabaseWrapper) -> None:
    """Mark attempts that give no sign of life for far longer than usual."""
    with _short_transaction(connection):
        wedged.mark_wedged(connection)


def call_roll(connection: BaseDatabaseWrapper) -> None:
    """Mark workers that were not seen for a lease's time, and delete those gone for a day."""
    if lost := workers.mark_lost(connection):
        logger.warning("Workers lost count=%s", lost)
        rest_schedules(connection)
    workers.forget_gone(connection)


def rest_schedules(connection: BaseDatabaseWrapper) -> None:
    """Let schedules rest that no code declares any more: a worker may have gone unseen."""
    for name in rest_undeclared(connection):
        logger.warning("No code declares the schedule any more schedule=%s", one_line(name))
