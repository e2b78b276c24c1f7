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
        self._apart = ApartClaims(worker_name=worker_name, lease_duration=lease_duration)
        self._ordinary = OrdinaryClaims(
            quotas, worker_name=worker_name, lease_duration=lease_duration
        )
        self._slots = slots
        self._room = NO_LIMITS

    @property
    def is_look_due(self) -> bool:
        """Whether it is time for a look at tasks apart, also while a worker is busy."""
        return self._apart.is_look_due

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
            # What stood behind better ordinary tasks, which are taken now.
            claimed += self._claim_apart(connection, want - len(claimed), unknown, apart)
        self._ordinary.is_busy = len(claimed) >= want
        return claimed

    def look_and_claim(
        self, connection: BaseDatabaseWrapper, want: int, unknown: Sequence[str]
    ) -> list[Claimed]:
        """Claim where there is nothing to record before.

        On PostgreSQL the ordinary claim is a transaction of its own; on SQLite a look costs less
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
        """Claim from queues in which ordinary tasks were enqueued, in one statement of its own.

        Only where the last look left nothing behind, and nothing else was announced since: then
        nothing better waits. Another look follows.
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
        """Claim what workflows have released in these queues; None among them: anywhere.

        In one statement, if all queues were looked at a moment ago.
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
            look = self._apart.look(connection)
            self.limited.see_beside(look.lanes, look.opens_in)

    def _queues_apart(self, connection: BaseDatabaseWrapper) -> list[str]:
        """The queues where such tasks wait; none while looks would take too much time."""
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
