"""Duties that every worker serves between its own tasks, each in a module of its own."""

from __future__ import annotations

import time
from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import Settings
from taskqueue.engine.apart import HAS_APART
from taskqueue.engine.ends import NEXT_END
from taskqueue.engine.forecast import HAS_READY, NEXT_DUE, promote
from taskqueue.engine.operations.serving import HAS_OPERATIONS
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.schedules.serving import HAS_ENDED_RUNS, NEXT_SCHEDULE
from taskqueue.engine.takeover import NEXT_EXPIRY
from taskqueue.engine.tally import Tally
from taskqueue.engine.workers import RANK
from taskqueue.worker.duties.departures import EndDeparted
from taskqueue.worker.duties.duty import Duty, Turn
from taskqueue.worker.duties.overdue import EndOverdue
from taskqueue.worker.duties.pruning import PruneHistory, PruneTasks
from taskqueue.worker.duties.several_workers import LookAfterBroadcasts
from taskqueue.worker.duties.statistics import MarkWedged, MergeRollups
from taskqueue.worker.duties.takeover import TakeOver
from taskqueue.worker.duties.waiting import ServeOperations, ServeSchedules
from taskqueue.worker.duties.workers import CallRoll, RestSchedules

PROMOTE_BATCH = 1000
# How much later, in seconds, each next worker serves what comes due; the first is not delayed.
STAGGER, LONGEST_STAGGER = 0.025, 1.0
# All that the duties look at, in the statement that promotes.
LOOKS = (
    NEXT_DUE, NEXT_END, NEXT_EXPIRY, NEXT_SCHEDULE,
    HAS_READY, HAS_APART, HAS_ENDED_RUNS, HAS_OPERATIONS, RANK,
)  # fmt: skip


class Duties:
    """Serve all duties in turn, and know when one is needed next."""

    def __init__(
        self,
        settings: Settings,
        *,
        worker_id: int,
        tally: Tally,
        schedules_until: datetime | None = None,
    ) -> None:
        """`schedules_until`: times of schedules that come later are left to other workers."""
        policy = EndPolicy.of(settings)
        self._interval = settings.TAKEOVER_INTERVAL.total_seconds()
        self._worker_id = worker_id
        self._take_over = TakeOver(policy, tally, grace=settings.LEASE_DURATION)
        self._duties: tuple[Duty, ...] = (
            EndOverdue(policy, tally),
            self._take_over,
            EndDeparted(policy, tally, interval=self._interval),
            LookAfterBroadcasts(policy),
            ServeSchedules(schedules_until),
            ServeOperations(),
            PruneTasks(),
            PruneHistory(),
            MergeRollups(),
            MarkWedged(),
            RestSchedules(),
            CallRoll(),
        )
        self.next_at = 0.0
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
        waits = [turn.wait_for(forecast.until(NEXT_DUE))]
        waits += [duty.step(turn) for duty in self._duties]
        wait = min((wait for wait in waits if wait is not None), default=self._interval)
        self.next_at = time.monotonic() + min(wait, self._interval)
        self.has_changed = self.has_changed or turn.has_changed
        return forecast.has_ready or forecast.holds(HAS_APART) or turn.may_claim
