"""Duties that every worker serves between its own tasks. Each is safe to run twice."""

from __future__ import annotations

import logging
import math
import time
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import Settings
from taskqueue.core.log_text import one_line
from taskqueue.engine import broadcast, multi_worker, takeover, wedged, workers
from taskqueue.engine.connections import transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.ends import end_overdue
from taskqueue.engine.failures import log_failed_tasks, log_taken_over
from taskqueue.engine.idempotency import prune_idempotency_keys
from taskqueue.engine.limits import Limits
from taskqueue.engine.operations import serving as operations
from taskqueue.engine.operations.pruning import prune_operations
from taskqueue.engine.pruning import AUDIT_KEPT
from taskqueue.engine.rollups import BATCH as MERGE_BATCH
from taskqueue.engine.rollups import merge_rollups
from taskqueue.engine.rows import DutyForecast
from taskqueue.engine.schedules.serving import Scheduler, prune_occurrences
from taskqueue.engine.schedules.syncing import rest_undeclared
from taskqueue.engine.sessions import is_sqlite, owns_session
from taskqueue.engine.tally import Tally
from taskqueue.worker.departed import Departures
from taskqueue.worker.takeover_checks import LOOK_INTERVAL, TakeoverChecks

logger = logging.getLogger("taskqueue.worker")

PROMOTE_BATCH = 1000
END_BATCH = 500
PRUNE_BATCH = 500
PRUNE_INTERVAL, PRUNE_PAUSE = 10.0, 0.1
PRUNE_AUDIT_INTERVAL = 3600.0
ROLL_CALL_INTERVAL, WEDGED_INTERVAL, MERGE_INTERVAL = 15.0, 60.0, 60.0
BEHIND_PAUSE = 0.01
"""Seconds until the next step where more schedules, or more of their times, are due."""
OVERDUE_PAUSE = 0.1
"""Seconds until another look at what is due and could not be served, such as what is locked."""
OPERATION_PAUSE = 0.5
"""Seconds until another look at bulk acts of which others have all, or that rest."""
STAGGER, LONGEST_STAGGER = 0.025, 1.0
"""How much later, in seconds, each next worker serves what comes due; the first is not delayed."""


class Duties:
    """Promote, end what is overdue, take over, prune, and know when that is needed next."""

    def __init__(
        self,
        settings: Settings,
        *,
        worker_id: int,
        tally: Tally,
        schedules_until: datetime | None = None,
    ) -> None:
        """`schedules_until`: times of schedules that come later are left to other workers."""
        self._schedules_until = schedules_until
        self._limits = Limits.of(settings)
        self._grace = settings.LEASE_DURATION
        self._interval = settings.TAKEOVER_INTERVAL.total_seconds()
        self._worker_id = worker_id
        self._tally = tally
        self._departures = Departures(self._limits, tally)
        self._departures_at = 0.0
        self._takeover_checks = TakeoverChecks(
            lease_seconds=settings.LEASE_DURATION.total_seconds()
        )
        self._scheduler = Scheduler()
        self._prune_at = 0.0
        self._prune_audit_at = 0.0
        self._roll_call_at = 0.0
        self._merge_at = 0.0
        self._wedged_at = 0.0
        self._broadcasts_after: UUID | None = None
        self._spare_until = -math.inf  # The clock may stand near zero, on a host just booted.
        self.next_at = 0.0
        self.has_changed = False
        """Whether the last step let a task move, or a schedule, or an operation."""

    def spare(self, now: float) -> None:
        """Take nothing over for one lease's time: the database was away, also for others.

        A standby that was promoted does not say since when it can be written to. A connection that
        breaks again and again spares nobody for longer than half of the time.
        """
        if now > self._spare_until + self._grace.total_seconds():
            self._spare_until = now + self._grace.total_seconds()

    def step(self, connection: BaseDatabaseWrapper, now: float) -> bool:
        """Serve what is due; whether there may be something to claim."""
        wording = dialect_for(connection)
        outlook = wording.promote(connection, worker_id=self._worker_id, limit=PROMOTE_BATCH)
        self.has_changed = outlook.promoted > 0
        if outlook.promoted == PROMOTE_BATCH:
            self.next_at = now
            return True
        if outlook.next_end is not None and outlook.next_end <= 0:
            ended = end_overdue(connection, limit=END_BATCH, limits=self._limits, tally=self._tally)
            log_failed_tasks(
                connection, [each.task_id for each in ended if each.status == "failed"]
            )
            self.has_changed = self.has_changed or bool(ended)
        spared = max(0.0, self._spare_until - now)
        next_expiry = outlook.next_expiry
        if next_expiry is not None:
            next_expiry = max(next_expiry, spared)
        if next_expiry is not None and next_expiry <= 0:
            self._take_over(connection)
        else:
            self._takeover_checks.clear()
        if now >= self._departures_at:
            self._departures_at = now + self._interval
            self._departures.step(connection)
        if outlook.has_apart:
            self._look_after_shared(connection)
        next_schedule, has_served = self._serve_schedules(connection, outlook)
        next_chunk, has_done = _serve_operations(connection, outlook)
        self.has_changed = self.has_changed or has_served or has_done
        self._clean_up(connection, now)
        waits = [self._interval]
        stagger = min(LONGEST_STAGGER, outlook.rank * STAGGER)
        for wait in (outlook.next_due, outlook.next_end, next_expiry, next_schedule):
            if wait is not None:
                waits.append((wait if wait > 0 else OVERDUE_PAUSE) + stagger)
        if next_chunk is not None:
            waits.append(next_chunk)
        if self._takeover_checks:
            waits.append(LOOK_INTERVAL)
        if self._prune_at <= now + PRUNE_PAUSE:
            waits.append(PRUNE_PAUSE)
        self.next_at = time.monotonic() + min(waits)
        return outlook.has_ready or outlook.has_apart or has_served or has_done

    def _serve_schedules(
        self, connection: BaseDatabaseWrapper, outlook: DutyForecast
    ) -> tuple[float | None, bool]:
        """Seconds until a schedule is due next, and whether any was served now."""
        wait, scheduler = outlook.next_schedule, self._scheduler
        if not outlook.has_ended_runs and (wait is None or wait > 0):
            return wait, False
        wait = scheduler.step(connection, now=self._schedules_until)
        if wait is not None and wait <= 0 and not scheduler.is_kept_out:
            wait = BEHIND_PAUSE
        return wait, scheduler.has_served

    def _look_after_shared(self, connection: BaseDatabaseWrapper) -> None:
        released, self._broadcasts_after = broadcast.release_gone(
            connection, limits=self._limits, after=self._broadcasts_after
        )
        if released:
            logger.warning("Broadcasts no longer wait for workers that ended parts=%s", released)
        log_failed_tasks(connection, multi_worker.end_overdue(connection, limits=self._limits))

    def _take_over(self, connection: BaseDatabaseWrapper) -> None:
        suspects = None
        if is_sqlite(connection):
            expired = takeover.expired(connection, grace=self._grace)
            suspects = self._takeover_checks.confirmed(expired, time.monotonic())
            if not suspects:
                return
        lost = takeover.take_over(
            connection,
            limits=self._limits,
            grace=self._grace,
            tally=self._tally,
            suspects=suspects,
        )
        for lease_id, (task_status, _) in lost.items():
            self._takeover_checks.forget(lease_id)
            logger.warning("Took over an expired lease lease=%s task_now=%s", lease_id, task_status)
        log_taken_over(connection, lost)

    def _clean_up(self, connection: BaseDatabaseWrapper, now: float) -> None:
        if now >= self._prune_at:
            with _transaction(connection):
                pruned = dialect_for(connection).prune(connection, limit=PRUNE_BATCH)
            self._prune_at = now + (PRUNE_PAUSE if pruned == PRUNE_BATCH else PRUNE_INTERVAL)
        if now >= self._prune_audit_at:
            with _transaction(connection):
                pruned = dialect_for(connection).prune_audit(
                    connection, limit=PRUNE_BATCH, kept=AUDIT_KEPT
                )
            pruned = max(
                pruned,
                prune_occurrences(connection),
                prune_operations(connection),
                prune_idempotency_keys(connection),
            )
            is_full = pruned == PRUNE_BATCH
            self._prune_audit_at = now + (PRUNE_INTERVAL if is_full else PRUNE_AUDIT_INTERVAL)
        if now >= self._merge_at:
            is_full = merge_rollups(connection) >= MERGE_BATCH
            self._merge_at = now + (PRUNE_INTERVAL if is_full else MERGE_INTERVAL)
        if now >= self._wedged_at:
            self._wedged_at = now + WEDGED_INTERVAL
            with _transaction(connection):
                wedged.mark_wedged(connection)
            rest_schedules(connection)
        if now >= self._roll_call_at:
            self._roll_call_at = now + ROLL_CALL_INTERVAL
            lost = workers.mark_lost(connection)
            if lost:
                logger.warning("Workers lost count=%s", lost)
                rest_schedules(connection)
            workers.forget_gone(connection)


def _serve_operations(
    connection: BaseDatabaseWrapper, outlook: DutyForecast
) -> tuple[float | None, bool]:
    """Do a chunk of a bulk act, if there is any; seconds until the next, and whether it did.

    It rests for as long as the chunk took, so that claiming and recording have their turn.
    """
    if not outlook.has_operations:
        return None, False
    started = time.monotonic()
    has_done = operations.step(connection)
    return (time.monotonic() - started if has_done else OPERATION_PAUSE), has_done


def rest_schedules(connection: BaseDatabaseWrapper) -> None:
    """Let those rest that no code declares any more, now that a worker may have gone."""
    for name in rest_undeclared(connection):
        logger.warning("No code declares the schedule any more schedule=%s", one_line(name))


def _transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    """One for a duty of single statements; on a session of one's own each is one by itself."""
    return nullcontext() if owns_session(connection) else transaction(connection)
