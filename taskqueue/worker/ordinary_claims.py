"""Claim tasks that any worker may take, queue by queue."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine import workers
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.forecast import ready_queues
from taskqueue.engine.rows import NO_FLOORS, Claimed
from taskqueue.worker.backlogs import Backlogs, Levels
from taskqueue.worker.floors import Floors
from taskqueue.worker.limits import NO_LIMITS, Room
from taskqueue.worker.quotas import QueueQuotas, Quotas

# Seconds for which a worker of all queues uses its list of queues with tasks.
DISCOVERY_INTERVAL = 1.0


class OrdinaryClaims:
    """Claims tasks that any worker may take, and knows which queues have some."""

    def __init__(self, quotas: QueueQuotas, *, worker_name: str, lease_duration: timedelta) -> None:
        self._quotas = quotas
        self._worker_name = worker_name
        self._lease_duration = lease_duration
        self.is_busy = False  # Whether the last claim got all that was wanted.
        self._known_queues: list[str] = []
        self._discovered_at = 0.0
        self._remembered: set[str] = set()
        self._announced: set[str] = set()  # Queues to remember, whose tasks a look may miss.
        self._floors = Floors()
        self._backlogs = Backlogs()

    def announce(self, queue_names: Iterable[str]) -> None:
        """Note queues that were claimed from without a look, to remember them."""
        if not self._quotas.weights:
            self._announced |= set(queue_names) - self._remembered

    def remember(self, connection: BaseDatabaseWrapper) -> None:
        """Write the rows of announced queues that are new to this worker."""
        if new := self._announced - self._remembered:
            self._remember(connection, new)

    def claim(
        self,
        connection: BaseDatabaseWrapper,
        want: int,
        unknown: Sequence[str],
        queues: Sequence[str] = (),
        *,
        room: Room = NO_LIMITS,
    ) -> list[Claimed]:
        """Claim up to `want` tasks of these queues, or of all, within this room."""
        if not room.least:
            return self._of_queues(connection, want, [*unknown, *room.full], queues, room)
        claimed: list[Claimed] = []
        # First whatever is next, in a number that cannot exceed a limit; then others. If slots stay
        # free, only limited tasks wait, and the next round takes them.
        while (size := min(want - len(claimed), room.least)) > 0:
            batch = self._of_queues(connection, size, [*unknown, *room.full], queues, room)
            claimed += batch
            if len(batch) < size:
                return claimed
            others = want - len(claimed)
            batch = self._of_queues(connection, others, [*unknown, *room.definitions], queues, room)
            claimed += batch
            if len(batch) == others:
                return claimed
        return claimed

    def _of_queues(
        self,
        connection: BaseDatabaseWrapper,
        want: int,
        unknown: Sequence[str],
        queues: Sequence[str],
        room: Room,
    ) -> list[Claimed]:
        claimed: list[Claimed] = []
        names = list(queues or self._queues(connection)) if want > 0 else []
        names = [name for name in names if room.is_in(name)]
        # A queue that gave too few is looked at without floors anyway.
        levels = self._backlogs.levels(connection, names, unknown) if names else None
        use_floors = names and self.is_busy and levels is None
        floors = self._floors.of(connection, names) if use_floors else NO_FLOORS
        while names and len(claimed) < want:
            quotas = room.bounded(self._quotas.quotas(names, want - len(claimed)))
            began = time.monotonic()
            if levels is not None:
                batch = self._behind_backlogs(connection, quotas, unknown, levels)
            else:
                batch = self._claimed(connection, quotas, unknown, floors)
                if not floors:
                    self._floors.took(time.monotonic() - began)
                self._backlogs.took(time.monotonic() - began, len(batch))
            claimed += batch
            room.take(batch)
            counts = Counter(row.queue_name for row in batch)
            short = {name for name, quota in quotas if counts[name] < quota}
            if not short:
                # Everything that was asked for, unless a queue had less room than its share.
                if len(claimed) >= want:
                    break
                names = [name for name in names if room.is_in(name)]
                continue
            if floors:
                floors = NO_FLOORS
                continue
            # Other queues may give what a queue could not.
            names = [name for name in names if name not in short]
            if not (self._quotas.weights or room.definitions):
                self._known_queues = [name for name in self._known_queues if name not in short]
        return claimed

    def _claimed(
        self,
        connection: BaseDatabaseWrapper,
        quotas: Quotas,
        unknown: Sequence[str],
        floors: Mapping[str, datetime],
        priority: int | None = None,
    ) -> list[Claimed]:
        return dialect_for(connection).claim(
            connection,
            worker=self._worker_name,
            quotas=quotas,
            unknown=unknown,
            lease_duration=self._lease_duration,
            floors=floors,
            priority=priority,
        )

    def _behind_backlogs(
        self,
        connection: BaseDatabaseWrapper,
        quotas: Quotas,
        unknown: Sequence[str],
        levels: Levels,
    ) -> list[Claimed]:
        claimed: list[Claimed] = []
        for name, size in quotas:
            left = size
            for priority, since in levels.get(name, ()):
                floors = NO_FLOORS if since is None else {name: since}
                if left > 0:
                    batch = self._claimed(connection, [(name, left)], unknown, floors, priority)
                    claimed += batch
                    left -= len(batch)
        return claimed

    def _queues(self, connection: BaseDatabaseWrapper) -> list[str]:
        if len(self._quotas.weights) == 1:
            return list(self._quotas.weights)
        if self._quotas.weights:
            return self._quotas.serving(ready_queues(connection))
        now = time.monotonic()
        is_old = now - self._discovered_at > DISCOVERY_INTERVAL
        if is_old or not self._known_queues or self._announced:
            self._known_queues = ready_queues(connection)
            self._discovered_at = now
            if new := {*self._known_queues, *self._announced} - self._remembered:
                self._remember(connection, new)
        return self._quotas.serving(self._known_queues)

    def _remember(self, connection: BaseDatabaseWrapper, new: set[str]) -> None:
        self._announced.clear()
        self._remembered |= new
        workers.remember_queues(connection, sorted(new))
