"""Take over the tasks of expired leases."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine import takeover
from taskqueue.engine.failures import log_taken_over
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.sessions import is_sqlite
from taskqueue.engine.tally import Tally
from taskqueue.worker.duty_turn import Turn

logger = logging.getLogger("taskqueue.worker")

# Seconds between finding a lease expired and taking it over. A body that holds SQLite's write lock
# keeps every worker from renewing. Once the lock is free, the worker has this long to renew.
SECOND_LOOK = 1.2
LOOK_INTERVAL = SECOND_LOOK / 4  # Seconds between two looks while a lease is suspected.
LONGEST_GAP = 0.75  # Looks further apart than this show that the lock was held in between.
# After this many lease durations, repeated holding of the lock no longer counts.
LONGEST_SUSPICION = 3


class TakeOver:
    """Takes over, unless the database was away for all workers."""

    def __init__(self, policy: EndPolicy, tally: Tally, *, grace: timedelta) -> None:
        self._policy = policy
        self._tally = tally
        self._grace = grace
        self._checks = TakeoverChecks(lease_seconds=grace.total_seconds())
        self._spare_until = -math.inf  # The clock may be near zero, on a host just booted.

    def spare(self, now: float) -> None:
        """Take nothing over for one lease's time: the database was away, for others too.

        A promoted standby does not say since when it can be written to. A connection that breaks
        again and again spares nobody for more than half of the time.
        """
        if now > self._spare_until + self._grace.total_seconds():
            self._spare_until = now + self._grace.total_seconds()

    def step(self, turn: Turn) -> float | None:
        """Take over expired leases. Return the seconds until the next turn."""
        expires_in = turn.forecast.until(takeover.NEXT_EXPIRY)
        if expires_in is not None:
            expires_in = max(expires_in, 0.0, self._spare_until - turn.now)
        if expires_in is not None and expires_in <= 0:
            self._take_over_expired(turn.connection)
        else:
            self._checks.confirmed((), turn.now)
        wait = turn.wait_for(expires_in)
        return min(LOOK_INTERVAL, wait or LOOK_INTERVAL) if self._checks else wait

    def _take_over_expired(self, connection: BaseDatabaseWrapper) -> None:
        suspects = None
        if is_sqlite(connection):
            expired = takeover.expired(connection, grace=self._grace)
            suspects = self._checks.confirmed(expired, time.monotonic())
            if not suspects:
                return
        lost = takeover.take_over(
            connection,
            policy=self._policy,
            grace=self._grace,
            tally=self._tally,
            suspects=suspects,
        )
        for lease_id, recorded in lost.items():
            logger.warning(
                "Took over an expired lease lease=%s task_now=%s", lease_id, recorded.task_status
            )
        log_taken_over(connection, lost)


class TakeoverChecks:
    """Spares workers that could not renew: only time with an available write lock counts."""

    def __init__(self, *, lease_seconds: float) -> None:
        self._bound = LONGEST_SUSPICION * lease_seconds
        self._looked_at = 0.0
        self._first: dict[int, float] = {}
        self._since: dict[int, float] = {}

    def __bool__(self) -> bool:
        return bool(self._since)

    def confirmed(self, expired: Iterable[int], now: float) -> set[int]:
        """Return those of the leases expired at `now` that have been expired for long enough."""
        is_gap = now - self._looked_at > LONGEST_GAP
        self._looked_at = now
        known = {} if is_gap else self._since
        self._since = {lease_id: known.get(lease_id, now) for lease_id in expired}
        self._first = {lease_id: self._first.get(lease_id, now) for lease_id in self._since}
        return {
            lease_id
            for lease_id, since in self._since.items()
            if now - since >= SECOND_LOOK or now - self._first[lease_id] >= self._bound
        }
