"""Claim tasks that only some workers may take, and decide when to look for them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.apart import Look, claim_apart, look_apart
from taskqueue.engine.rows import Claimed
from taskqueue.worker.limits import Room

# Seconds between two looks for tasks of several or named workers while other tasks keep the worker
# busy.
APART_INTERVAL = 0.05
# If a look takes longer than this many seconds and finds no task, it is not repeated soon.
SLOW_LOOK = 0.01
APART_SHARE = 0.05  # The most of its time that a worker spends on slow looks.
# The most seconds of pause after the first slow look: it may have met a network or host that stood
# still, and then says nothing about the next look.
FIRST_APART_PAUSE = 5.0


class ApartClaims:
    """Claims tasks of several or named workers; looking for them takes little of the time."""

    def __init__(self, *, worker_name: str, lease_duration: timedelta) -> None:
        self._worker_name = worker_name
        self._lease_duration = lease_duration
        self._looked_at = 0.0
        self._slow_until = 0.0
        self._slow_looks = 0  # Slow looks in a row.

    @property
    def is_look_due(self) -> bool:
        """Whether it is time for a look, even if the worker is busy."""
        return time.monotonic() >= self._looked_at + APART_INTERVAL

    @property
    def is_slow(self) -> bool:
        """Whether looks would take too much of the worker's time."""
        return time.monotonic() < self._slow_until

    def look(self, connection: BaseDatabaseWrapper) -> Look:
        """Find where such tasks wait, and which partitions are open."""
        self._looked_at = time.monotonic()
        return look_apart(connection, worker=self._worker_name)

    def claim(
        self,
        connection: BaseDatabaseWrapper,
        want: int,
        unknown: Sequence[str],
        queue_names: Sequence[str],
        *,
        room: Room,
    ) -> list[Claimed]:
        """Claim up to `want` tasks of these queues, none before a better ordinary task."""
        began = time.monotonic()
        names = [name for name in queue_names if room.is_in(name)]
        if not names or want <= 0 or self.is_slow:
            return []
        claimed = claim_apart(
            connection,
            worker=self._worker_name,
            queue_names=names,
            unknown=[*unknown, *room.full],
            limit=room.least_of(names, want),
            lease_duration=self._lease_duration,
        )
        room.take(claimed)
        ended = time.monotonic()
        if not claimed and ended - began > SLOW_LOOK:
            # Many tasks there may be only for other workers: the claim passes over them one by one.
            self._slow_looks += 1
            pause = (ended - began) / APART_SHARE
            self._slow_until = ended + (
                pause if self._slow_looks > 1 else min(pause, FIRST_APART_PAUSE)
            )
        else:
            self._slow_looks = 0
        return claimed
