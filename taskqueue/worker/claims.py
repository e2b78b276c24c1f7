"""Claim tasks: decide which tasks a worker takes next, and from which of its queues."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import transaction
from taskqueue.engine.forecast import ready_queues
from taskqueue.engine.rows import Claimed
from taskqueue.engine.sessions import is_sqlite, owns_session
from taskqueue.worker.apart_claims import ApartClaims
from taskqueue.worker.limited_claims import LimitedClaims
from taskqueue.worker.limits import NO_LIMITS, Room
from taskqueue.worker.ordinary_claims import OrdinaryClaims
from taskqueue.worker.quotas import QueueQuotas


class Claims:
    """Claims tasks. Those that only some workers may run go before ordinary ones of equal rank."""

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
        self._apart = ApartClaims(worker_name=worker_name, lease_duration=lease_duration)
        self._ordinary = OrdinaryClaims(
            quotas, worker_name=worker_name, lease_duration=lease_duration
        )
        self._slots = slots
        self._room = NO_LIMITS

    @property
    def is_look_due(self) -> bool:
        """Whether it is time to look for tasks apart, even if the worker is busy."""
        return self._apart.is_look_due

    def begin(self, room: Room, *, slots: int) -> None:
        """Begin a request whose claims take no more than `room`, and subtract from it."""
        self._room, self._slots = room, slots
        self.limited.number = 0

    def claim(
        self, connection: BaseDatabaseWrapper, want: int, unknown: Sequence[str]
    ) -> list[Claimed]:
        """Claim in the caller's transaction."""
        if want <= 0:
            return []
        if not self._ordinary.is_busy or self.is_look_due:
            return self._claim(connection, want, unknown, self._queues_apart(connection))
        claimed = self._claim(connection, want, unknown, [])
        if len(claimed) < want:
            apart = self._queues_apart(connection)
            claimed += self._claim_apart(connection, want - len(claimed), unknown, apart)
        return claimed

    def _claim(
        self, connection: BaseDatabaseWrapper, want: int, unknown: Sequence[str], apart: list[str]
    ) -> list[Claimed]:
        claimed = self._claim_apart(connection, want, unknown, apart)
        claimed += self._claim_ordinary(connection, want - len(claimed), unknown)
        if apart and len(claimed) < want:
            # Tasks apart that came after better ordinary tasks, which have been taken now.
            claimed += self._claim_apart(connection, want - len(claimed), unknown, apart)
        self._ordinary.is_busy = len(claimed) >= want
        return claimed

    def look_and_claim(
        self, connection: BaseDatabaseWrapper, want: int, unknown: Sequence[str]
    ) -> list[Claimed]:
        """Claim when there is nothing to record first.

        On PostgreSQL the ordinary claim is a separate transaction; on SQLite looking costs less
        than the write lock that a claim takes.
        """
        if self._ordinary.is_busy and not self.is_look_due and owns_session(connection):
            claimed = self._claim_ordinary(connection, want, unknown)
            if len(claimed) == want:
                return claimed
            self._ordinary.is_busy = False
            return claimed + self.look_and_claim(connection, want - len(claimed), unknown)
        apart = self._queues_apart(connection) if want > 0 else []
        if not apart:
            if is_sqlite(connection):
                if not self._quotas.serving(ready_queues(connection)):
                    return []
            elif owns_session(connection):
                claimed = self._claim_ordinary(connection, want, unknown)
                self._ordinary.is_busy = len(claimed) >= want
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
        """Claim from queues in which ordinary tasks were enqueued, in one separate statement.

        Use it only if the last look left nothing behind, and nothing else was announced since: then
        no better task waits. Another look follows.
        """
        claimed = self._claim_ordinary(connection, want, unknown, queues)
        self._ordinary.announce(row.queue_name for row in claimed)
        return claimed

    def claim_released(
        self,
        connection: BaseDatabaseWrapper,
        want: int,
        unknown: Sequence[str],
        queues: Collection[str | None],
    ) -> list[Claimed]:
        """Claim tasks that workflows have released in these queues; None stands for any queue.

        One statement suffices if all queues were looked at a moment ago.
        """
        names = self._quotas.serving(name for name in queues if name is not None)
        is_known = bool(names) and None not in queues and not self._quotas.is_outranked(names)
        if not is_known or self._apart.is_look_due:
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
        """Claim tasks of partitions, if the last look saw any; see `LimitedClaims`."""
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
        self._ordinary.announce(row.queue_name for row in claimed)
        return claimed

    def remember_queues(self, connection: BaseDatabaseWrapper) -> None:
        """Give queues rows whose limited tasks were claimed: outside of transactions that claim.

        Within one, the row of a queue would be a further lock beside those of limiters.
        """
        self._ordinary.remember(connection)

    def look_for_lanes(self, connection: BaseDatabaseWrapper) -> None:
        """Look from time to time for newly opened partitions, unknown to the last claim."""
        if self.is_look_due:
            look = self._apart.look(connection)
            self.limited.see_beside(look.lanes, look.opens_in)

    def _queues_apart(self, connection: BaseDatabaseWrapper) -> list[str]:
        """Return the queues with tasks apart; none while looking would take too much time."""
        if self._apart.is_slow:
            return []
        look = self._apart.look(connection)
        self.limited.see(look.lanes, look.opens_in)
        return self._quotas.serving(look.queues)

    def _claim_apart(
        self, connection: BaseDatabaseWrapper, want: int, unknown: Sequence[str], names: list[str]
    ) -> list[Claimed]:
        most = min(want, self._slots)
        return self._apart.claim(connection, most, unknown, names, room=self._room)

    def _claim_ordinary(
        self,
        connection: BaseDatabaseWrapper,
        want: int,
        unknown: Sequence[str],
        queues: Sequence[str] = (),
    ) -> list[Claimed]:
        return self._ordinary.claim(connection, want, unknown, queues, room=self._room)
