"""Claims tasks of partitions, and knows from the last look whether there are any."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.apart import best_ordinary
from taskqueue.engine.limits.claiming import Claimant, always, claim_limited
from taskqueue.engine.rows import Claimed, Place, ReadyTask
from taskqueue.worker.limits import Room
from taskqueue.worker.quotas import QueueQuotas

# Seconds after which a worker looks again at the first partitions of a lane, which held only tasks
# that it does not know.
PASSED_FOR = 3.0


class LimitedClaims:
    """Claims under limits, in transactions of their own."""

    def __init__(
        self,
        quotas: QueueQuotas,
        *,
        worker_name: str,
        host: str,
        tags: Sequence[str],
        lease_duration: timedelta,
    ) -> None:
        self._quotas = quotas
        self._worker_name, self._host, self._tags = worker_name, host, frozenset(tags)
        self._lease_duration = lease_duration
        # The queues and lanes with open partitions, as the last look saw them.
        self.lanes: set[tuple[str, str]] = set()
        # Whether that look came after the last claim.
        self.has_news = False
        # Whether something was left that others held at that moment.
        self.is_left = False
        # Places in lanes before which nothing was for this worker, and until when they are trusted.
        self._behind: dict[tuple[str, str], Place] = {}
        self._behind_until = 0.0

    def see(self, lanes: set[tuple[str, str]]) -> None:
        """Take in what a look has seen."""
        self.lanes, self.has_news = lanes, bool(lanes)

    def claim(
        self,
        connection: BaseDatabaseWrapper,
        want: int,
        unknown: Sequence[str],
        *,
        room: Room,
        free: int,
        is_first: bool = False,
        is_within: bool = False,
    ) -> list[Claimed]:
        """Claim up to `want` tasks, of those that must not be claimed ahead up to `free`.

        `is_first`: none that stands behind a better ordinary task of its queue. `is_within`: in the
        caller's transaction.
        """
        lanes, self.lanes = self.lanes, set()
        self.has_news = self.is_left = False
        if want <= 0 or not lanes:
            return []
        best: dict[str, tuple[int, float] | None] = {}

        def goes(queue_name: str, task: ReadyTask) -> bool:
            if queue_name not in best:
                best[queue_name] = best_ordinary(connection, queue_name, unknown)
            other = best[queue_name]
            return other is None or (-task.priority, task.run_after) <= (-other[0], other[1])

        if (now := time.monotonic()) >= self._behind_until:
            self._behind.clear()
            self._behind_until = now + PASSED_FOR
        limited = claim_limited(
            connection,
            self._claimant(room),
            lanes=lanes,
            want=want,
            free=free,
            unknown=unknown,
            lease_duration=self._lease_duration,
            goes=goes if is_first else always,
            is_within=is_within,
            behind=self._behind,
        )
        self.is_left = limited.is_left
        if limited.claimed or limited.is_left:
            self.lanes = lanes  # Until a look, or a claim that gets nothing, says otherwise.
        return limited.claimed

    def _claimant(self, room: Room) -> Claimant:
        """Return the worker as it claims within this room."""
        return Claimant(
            name=self._worker_name,
            host=self._host,
            tags=self._tags,
            serving=lambda names: [
                name for name in self._quotas.serving(names) if room.is_in(name)
            ],
            quotas=lambda names, size: room.bounded(self._quotas.quotas(names, size)),
        )
