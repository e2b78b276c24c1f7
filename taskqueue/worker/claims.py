"""Claims: which tasks a worker takes next, and from which of its queues."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine import workers
from taskqueue.engine.apart import claim_apart, look_apart
from taskqueue.engine.connections import transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.forecast import ready_queues
from taskqueue.engine.rows import NO_FLOORS, Claimed
from taskqueue.engine.sessions import is_sqlite, owns_session
from taskqueue.worker.backlogs import Backlogs, Levels
from taskqueue.worker.limited_claims import LimitedClaims
from taskqueue.worker.limits import NO_LIMITS, Room
from taskqueue.worker.quotas import QueueQuotas, Quotas

# Seconds for which a worker of all queues trusts the list of those that have tasks.
DISCOVERY_INTERVAL = 1.0
# Seconds between two looks for tasks of several or named workers, while others keep it busy.
APART_INTERVAL = 0.05
# Seconds: a look for such tasks that takes longer and finds none is not soon repeated.
SLOW_LOOK = 0.01
APART_SHARE = 0.05  # The most of its time that a worker spends on slow looks.
# Seconds, at most, after the first slow look: it may have met a network or a host that stood still,
# and says nothing of the next one.
FIRST_APART_PAUSE = 5.0
# Seconds: after a claim without floors that takes longer, the next ones have them.
SLOW_CLAIM = 0.005
USED_FOR = 10.0  # Seconds, until a claim without floors tells whether they are needed still.
FLOOR_SHARE = 0.05  # The most of its time that a worker spends on finding floors.
SHORTEST_FLOOR = 0.1  # Seconds for which floors hold at least.


class Claims:
    """Claims tasks: those that only some workers may run go before ordinary ones of their rank."""

    def __init__(
        self,
        quotas: QueueQuotas,
        *,
        worker_name: str,
        slots: int,
        lease_duration: timedelta,
        host: str = "",
        tags: Sequence[str] = (),
    ) -> None:
        self._quotas = quotas
        self.limited = LimitedClaims(
            quotas, worker_name=worker_name, host=host, tags=tags, lease_duration=lease_duration
        )
        self._worker_name = worker_name
        self._slots = slots
        self._room = NO_LIMITS
        self._lease_duration = lease_duration
        self._known_queues: list[str] = []
        self._discovered_at = 0.0
        self._remembered: set[str] = set()
        self._announced: set[str] = set()  # Queues to remember, whose tasks no look may meet.
        self._is_busy = False  # Whether the last claim gave all that was wanted.
        self._floors = Floors()
        self._backlogs = Backlogs()
        self._looked_apart_at = 0.0
        self._slow_until = 0.0
        self._slow_looks = 0  # Slow looks in a row.

    @property
    def is_look_due(self) -> bool:
        """Whether it is time for a look at tasks apart, also while a worker is busy."""
        return time.monotonic() >= self._looked_apart_at + APART_INTERVAL

    def begin(self, room: Room, *, slots: int) -> None:
        """Begin a request: its claims take no more than this room, and let that know."""
        self._room, self._slots = room, slots
        self.limited.number = 0

    def claim(
        self, connection: BaseDatabaseWrapper, want: int, unknown: Sequence[str]
    ) -> list[Claimed]:
        """Claim in the caller's transaction."""
        if want <= 0:
            return []
        if not self._is_busy or self.is_look_due:
            return self._claim(connection, want, unknown, self._queues_apart(connection))
        claimed = self._claim(connection, want, unknown, [])
        if len(claimed) < want:
            apart = self._queues_apart(connection)
            claimed += self._apart(connection, want - len(claimed), unknown, apart)
        return claimed

    def _claim(
        self, connection: BaseDatabaseWrapper, want: int, unknown: Sequence[str], apart: list[str]
    ) -> list[Claimed]:
        claimed = self._apart(connection, want, unknown, apart)
        claimed += self._ordinary(connection, want - len(claimed), unknown)
        if apart and len(claimed) < want:
            # What stood behind better ordinary tasks, which are taken now.
            claimed += self._apart(connection, want - len(claimed), unknown, apart)
        self._is_busy = len(claimed) >= want
        return claimed

    def look_and_claim(
        self, connection: BaseDatabaseWrapper, want: int, unknown: Sequence[str]
    ) -> list[Claimed]:
        """Claim where there is nothing to record before.

        On PostgreSQL the ordinary claim is a transaction of its own; on SQLite a look costs less
        than the write lock that a claim takes.
        """
        if self._is_busy and not self.is_look_due and owns_session(connection):
            claimed = self._ordinary(connection, want, unknown)
            if len(claimed) == want:
                return claimed
            self._is_busy = False
            return claimed + self.look_and_claim(connection, want - len(claimed), unknown)
        apart = self._queues_apart(connection) if want > 0 else []
        if not apart:
            if is_sqlite(connection):
                if not self._quotas.serving(ready_queues(connection)):
                    return []
            elif owns_session(connection):
                claimed = self._ordinary(connection, want, unknown)
                self._is_busy = len(claimed) >= want
                return claimed
        with transaction(connection):
            return self._claim(connection, want, unknown, apart)

    def claim_announced(
        self,
        connection: BaseDatabaseWrapper,
        want: int,
        unknown: Sequence[str],
        queues: Sequence[str],
    ) -> list[Claimed]:
        """Claim from queues in which ordinary tasks were enqueued, in one statement of its own.

        Only where the last look left nothing behind, and nothing else was announced since: then
        nothing better waits. Another look follows.
        """
        claimed = self._ordinary(connection, want, unknown, queues)
        if not self._quotas.weights:
            self._announced |= {row.queue_name for row in claimed} - self._remembered
        return claimed

    def claim_released(
        self,
        connection: BaseDatabaseWrapper,
        want: int,
        unknown: Sequence[str],
        queues: Collection[str | None],
    ) -> list[Claimed]:
        """Claim what workflows have released in these queues; None among them: anywhere.

        In one statement, if all queues were looked at a moment ago.
        """
        names = self._quotas.serving(name for name in queues if name is not None)
        is_known = bool(names) and None not in queues and not self._quotas.is_outranked(names)
        if not is_known or time.monotonic() >= self._looked_apart_at + APART_INTERVAL:
            return self.look_and_claim(connection, want, unknown)
        with nullcontext() if owns_session(connection) else transaction(connection):
            return self.claim_announced(connection, want, unknown, names)

    def claim_limited(
        self,
        connection: BaseDatabaseWrapper,
        want: int,
        unknown: Sequence[str],
        *,
        free: int,
        is_first: bool = False,
        is_within: bool = False,
    ) -> list[Claimed]:
        """Claim tasks of partitions, as far as the last look saw any; see `LimitedClaims`."""
        room = self._room
        claimed = self.limited.claim(
            connection,
            room.least_of((), want) if room.least else want,
            [*unknown, *room.full],
            room=room,
            free=free,
            slots=self._slots,
            is_first=is_first,
            is_within=is_within,
        )
        room.take(claimed)
        return claimed

    def look_for_lanes(self, connection: BaseDatabaseWrapper) -> None:
        """Look now and then whether partitions were opened that the last claim did not know."""
        if self.is_look_due:
            self._looked_apart_at = time.monotonic()
            look = look_apart(connection, worker=self._worker_name)
            self.limited.see_beside(look.lanes, look.opens_in)

    # Tasks that not every worker may take

    def _queues_apart(self, connection: BaseDatabaseWrapper) -> list[str]:
        """The queues where such tasks wait; none while looks would take too much time."""
        now = time.monotonic()
        if now < self._slow_until:
            return []
        self._looked_apart_at = now
        look = look_apart(connection, worker=self._worker_name)
        self.limited.see(look.lanes, look.opens_in)
        return self._quotas.serving(look.queues)

    def _apart(
        self, connection: BaseDatabaseWrapper, want: int, unknown: Sequence[str], names: list[str]
    ) -> list[Claimed]:
        began, room = time.monotonic(), self._room
        names = [name for name in names if room.is_in(name)]
        if not names or want <= 0 or began < self._slow_until:
            return []
        claimed = claim_apart(
            connection,
            worker=self._worker_name,
            queue_names=names,
            unknown=[*unknown, *room.full],
            limit=room.least_of(names, min(want, self._slots)),
            lease_duration=self._lease_duration,
        )
        room.take(claimed)
        ended = time.monotonic()
        if not claimed and ended - began > SLOW_LOOK:
            # Many may wait there that only others may take: they are passed over one by one.
            self._slow_looks += 1
            pause = (ended - began) / APART_SHARE
            self._slow_until = ended + (
                pause if self._slow_looks > 1 else min(pause, FIRST_APART_PAUSE)
            )
        else:
            self._slow_looks = 0
        return claimed

    # Tasks that any worker may take

    def _ordinary(
        self,
        connection: BaseDatabaseWrapper,
        want: int,
        unknown: Sequence[str],
        queues: Sequence[str] = (),
    ) -> list[Claimed]:
        room = self._room
        if not room.least:
            return self._of_queues(connection, want, [*unknown, *room.full], queues)
        claimed: list[Claimed] = []
        # Whatever is next, but no more than cannot exceed a limit; then others. Where that leaves
        # slots free, only limited tasks wait, and the next round takes them.
        while (size := min(want - len(claimed), room.least)) > 0:
            batch = self._of_queues(connection, size, [*unknown, *room.full], queues)
            claimed += batch
            if len(batch) < size:
                return claimed
            others = want - len(claimed)
            batch = self._of_queues(connection, others, [*unknown, *room.definitions], queues)
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
    ) -> list[Claimed]:
        room = self._room
        claimed: list[Claimed] = []
        names = list(queues or self._queues(connection)) if want > 0 else []
        names = [name for name in names if room.is_in(name)]
        # A queue that is short is looked at without floors anyway.
        levels = self._backlogs.levels(connection, names, unknown) if names else None
        use_floors = names and self._is_busy and levels is None
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
                # All that was asked for, unless a queue had less room than its share.
                if len(claimed) >= want:
                    break
                names = [name for name in names if room.is_in(name)]
                continue
            if floors:
                floors = NO_FLOORS
                continue
            # What a queue could not give, the others may.
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
                self._announced.clear()
                self._remembered |= new
                workers.remember_queues(connection, sorted(new))
        return self._quotas.serving(self._known_queues)


class Floors:
    """Floors: where the ready tasks of a queue begin, behind the dead rows of finished ones.

    A claim reads its index from the head of the queue. Until a vacuum, the entries of claimed
    tasks are still there: a million of them cost a claim more than its tasks do.

    A task that becomes ready below a floor waits until the floor is looked up again, or a claim
    with it comes back short and is repeated without.
    """

    def __init__(self) -> None:
        self._used_until = 0.0
        self._known: Mapping[str, datetime] = NO_FLOORS
        self._known_until = 0.0

    def of(self, connection: BaseDatabaseWrapper, names: Sequence[str]) -> Mapping[str, datetime]:
        """The floors of these queues; none while claims are fast."""
        began = time.monotonic()
        if began >= self._used_until:
            return NO_FLOORS
        if began >= self._known_until:
            self._known = dialect_for(connection).earliest_ready(connection, names)
            ended = time.monotonic()
            self._known_until = ended + max(SHORTEST_FLOOR, (ended - began) / FLOOR_SHARE)
        return self._known

    def took(self, seconds: float) -> None:
        """Note how long a claim without floors has taken."""
        if seconds > SLOW_CLAIM:
            self._used_until = time.monotonic() + USED_FOR
