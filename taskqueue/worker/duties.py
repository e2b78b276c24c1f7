"""The duties that every worker serves between its tasks. Each is safe to do twice."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import Settings
from taskqueue.engine import broadcast, multi_worker
from taskqueue.engine.alerts.serving import NEXT_ALERT
from taskqueue.engine.apart import HAS_APART
from taskqueue.engine.batches.firing import HAS_COLLECTED, fire_due
from taskqueue.engine.ends import NEXT_END, end_overdue
from taskqueue.engine.events.numbering import BATCH as EVENTS_BATCH
from taskqueue.engine.events.numbering import HAS_NEW_EVENTS, WANTED_KINDS, pump
from taskqueue.engine.failures import log_failed_tasks
from taskqueue.engine.forecast import HAS_READY, NEXT_DUE, promote
from taskqueue.engine.limits.lanes import HAS_PARTITIONS, NEXT_TOKEN
from taskqueue.engine.operations import serving as operations
from taskqueue.engine.operations.serving import NEXT_OPERATION
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.schedules.ends import HAS_ENDED_RUNS
from taskqueue.engine.schedules.serving import NEXT_SCHEDULE, Scheduler
from taskqueue.engine.stays import HAS_STAYS, release_stays
from taskqueue.engine.takeover import NEXT_EXPIRY
from taskqueue.engine.tally import Tally
from taskqueue.engine.workers import RANK
from taskqueue.engine.workflows import serving as workflows
from taskqueue.engine.workflows.serving import HAS_WORKFLOWS, NEXT_WORKFLOW_DEADLINE
from taskqueue.worker.duty_turn import OVERDUE_PAUSE, Timed, Turn
from taskqueue.worker.periodic_duties import PeriodicDuties
from taskqueue.worker.presence import Departures
from taskqueue.worker.takeover import TakeOver

logger = logging.getLogger("taskqueue.worker")

PROMOTE_BATCH = 1000
OVERDUE_BATCH = 500
# The seconds by which each further worker serves due work later; the first is not delayed.
STAGGER, LONGEST_STAGGER = 0.025, 1.0
# Seconds until the next step if more schedules, or more of their times, are due.
BEHIND_PAUSE = 0.01
# Seconds until another look at operations that others have locked, or that pause.
OPERATION_PAUSE = 0.5
# Seconds until another look at workflows that others advance, or that are stopping; and for how
# long one turn goes on while there is more to do, such as cancelling a wide map.
WORKFLOW_PAUSE, WORKFLOW_TURN = 0.25, 0.2
# Seconds between looks at groups that collect events: of the first worker, of the second.
BATCH_PAUSE, OTHER_BATCH_PAUSE = 1.0, 5.0
# Seconds between looks for new events, while anybody wants any: of the first worker, of others.
PUMP_PAUSE, OTHER_PUMP_PAUSE = 0.1, 1.0
# The looks of the duties in the statement that promotes; periodic duties add their own.
LOOKS = (
    NEXT_DUE, NEXT_END, NEXT_EXPIRY, NEXT_SCHEDULE, NEXT_OPERATION,
    HAS_READY, HAS_APART, HAS_ENDED_RUNS, RANK,
    HAS_WORKFLOWS, NEXT_WORKFLOW_DEADLINE, HAS_COLLECTED, HAS_PARTITIONS, NEXT_TOKEN,
    WANTED_KINDS, HAS_NEW_EVENTS, NEXT_ALERT, HAS_STAYS,
)  # fmt: skip


class Duties:
    """Serves all duties in turn, and knows when one is needed next.

    The step of a duty returns the seconds until its next turn, or None if it needs none itself.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        worker_id: int,
        tally: Tally,
        schedules_until: datetime | None = None,
        timed_seconds: float = math.inf,
        more: tuple[Timed, ...] = (),
    ) -> None:
        """`schedules_until`: later times of schedules are left to other workers.

        `timed_seconds`: for how long one turn serves periodic duties; `more`: further ones.
        """
        self._policy = policy = EndPolicy.of(settings)
        self._tally = tally
        self._interval = interval = settings.TAKEOVER_INTERVAL.total_seconds()
        self._worker_id = worker_id
        self._schedules_until = schedules_until
        self.periodic = PeriodicDuties(timed_seconds, more)
        self._looks = (*LOOKS, *self.periodic.looks)
        self._scheduler = Scheduler()
        self._take_over = TakeOver(policy, tally, grace=settings.LEASE_DURATION)
        self._is_to_spare = False
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
            self.periodic.step,
        )
        self._stays = Timed(release_stays, every=interval, again=0.1)
        self._batches_at = 0.0
        # The kinds of events that anybody wanted at the last look, separated by spaces.
        self.wanted_events = ""
        self.next_at = 0.0
        # When a waiting partition next gets a token: then a claim is needed, not a duty.
        self.opens_at = math.inf
        # Whether the last step changed a task, a schedule or an operation.
        self.has_changed = False

    def spare(self) -> None:
        """Take nothing over for one lease's time from the next step that can write.

        The database was away, for others too. It may answer reads before it takes writes.
        """
        self._is_to_spare = True

    def step(self, connection: BaseDatabaseWrapper, now: float) -> bool:
        """Promote, and serve due duties. Return whether there may be something to claim."""
        forecast = promote(
            connection, self._looks, left_out=self.periodic.left_out(now),
            worker_id=self._worker_id, limit=PROMOTE_BATCH,
        )  # fmt: skip
        if self._is_to_spare:
            self._is_to_spare = False
            self._take_over.spare(now)
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
        """Check waiting broadcasts, a batch in each turn."""
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
        """Let other workers take tasks whose worker is gone."""
        return self._stays.step(turn) if turn.forecast.holds(HAS_STAYS) else None

    def _serve_schedules(self, turn: Turn) -> float | None:
        """Serve the schedules that are due or have an ended run."""
        wait, scheduler = turn.forecast.until(NEXT_SCHEDULE), self._scheduler
        if turn.forecast.is_over(NEXT_SCHEDULE) or turn.forecast.holds(HAS_ENDED_RUNS):
            wait = scheduler.step(turn.connection, now=self._schedules_until)
            if wait is not None and wait <= 0 and not scheduler.is_kept_out:
                wait = BEHIND_PAUSE
            if scheduler.has_served:
                turn.has_changed = turn.may_claim = True
        return turn.wait_for(wait)

    def _serve_operations(self, turn: Turn) -> float | None:
        """Run a chunk of an operation, if there is one.

        It then pauses for as long as the chunk took, so that claims and records have their turn.
        """
        if not turn.forecast.is_over(NEXT_OPERATION):
            return turn.wait_for(turn.forecast.until(NEXT_OPERATION))
        started = time.monotonic()
        if not operations.step(turn.connection):
            return OPERATION_PAUSE
        turn.has_changed = turn.may_claim = True
        return time.monotonic() - started

    def _advance_workflows(self, turn: Turn) -> float | None:
        """Do work left in workflows: the worker that should have done it may be gone."""
        if turn.forecast.is_over(NEXT_WORKFLOW_DEADLINE):
            turn.has_changed = workflows.end_overdue(turn.connection) or turn.has_changed
        wait = turn.wait_for(turn.forecast.until(NEXT_WORKFLOW_DEADLINE))
        if not turn.forecast.holds(HAS_WORKFLOWS):
            return wait
        until = time.monotonic() + WORKFLOW_TURN
        pause = WORKFLOW_PAUSE
        while workflows.serve(turn.connection):
            turn.has_changed = turn.may_claim = True
            if time.monotonic() >= until:
                pause = BEHIND_PAUSE
                break
        return pause if wait is None else min(wait, pause)

    def _fire_batches(self, turn: Turn) -> float | None:
        """Enqueue the batches of due groups. The first worker looks once a second.

        The others look less often, in case the workers before them do not.
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
        """Number new events and apply their effects. The first worker looks most often."""
        self.wanted_events = turn.forecast.text(WANTED_KINDS)
        if not (self.wanted_events or turn.forecast.holds(HAS_NEW_EVENTS)):
            return None
        if turn.forecast.holds(HAS_NEW_EVENTS):
            numbered = pump(turn.connection)
            if numbered.number:
                turn.has_changed = turn.may_claim = True
            # After a larger turn, which took longer, the worker's own tasks come first.
            if numbered.leaves_some and numbered.number <= EVENTS_BATCH:
                return BEHIND_PAUSE
        rank = turn.forecast.number(RANK)
        return PUMP_PAUSE if rank == 0 else OTHER_PUMP_PAUSE + turn.stagger

    def _look_at_alerts(self, turn: Turn) -> float | None:
        """Check the alert rules that are due."""
        if not turn.forecast.is_over(NEXT_ALERT):
            return turn.wait_for(turn.forecast.until(NEXT_ALERT))
        # Imported only if there are rules, because judging them needs many imports.
        from taskqueue.alerts.duty import look

        if look(turn.connection):
            turn.has_changed = turn.may_claim = True
        return None
