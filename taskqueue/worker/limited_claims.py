"""Claim tasks under limits, and remember from the last look whether there are any."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.limit_rows import PassingTerms, Place
from taskqueue.engine.limits.claimant import Claimant, Limited
from taskqueue.engine.limits.lanes import NEWS
from taskqueue.engine.notify import PLACES
from taskqueue.engine.rows import Claimed
from taskqueue.engine.sessions import is_postgresql
from taskqueue.worker.limits import Room
from taskqueue.worker.quotas import QueueQuotas

if TYPE_CHECKING:
    from taskqueue.engine.postgresql.limit_pass import Passed

# How many tasks for each slot may be claimed ahead of free slots. Tasks that wait here take places
# that other workers could use.
AHEAD = 2
REMEMBERED = 10.0  # Seconds for which a lane without open partitions is still served.
PATIENT_AFTER = 3  # After this many claims that got nothing because of locks, the next one waits.
MOST_HELD = 10_000  # The most leases that are remembered: some end without the worker.
# Seconds after which a worker looks again at the first partitions of a lane that had only tasks
# unknown to it.
PASSED_FOR = 3.0
# Seconds after a token has come until a worker looks that did not take the last tokens.
TOKEN_LATER = 0.005
# For this many seconds after a claim of all partitions, places pass on, whatever else there is.
PASSED_ON_FOR = 0.05


class LimitedClaims:
    """Claims under limits, in separate transactions or in the one that records."""

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
        # The queues and lanes with open partitions, as of the last look.
        self._open: set[tuple[str, str]] = set()
        # When a lane was last seen open, or last claimed from.
        self._known: dict[tuple[str, str], float] = {}
        # Leases that were claimed here, as far as they are known; with the partition, if the
        # lease's places may pass on.
        self._held: dict[int, str | None] = {}
        # When all partitions were last looked at, and whether that was shortly before places last
        # passed on.
        self._claimed_at = -math.inf
        self._is_recent = False
        self._vain = 0  # Claims in a row that got nothing, though there were tasks.
        # Whether that look was after the last claim.
        self.has_news = False
        # Whether the last claim saw no other work in any lane.
        self.is_alone = False
        self.number = 0  # Tasks that the current request has claimed so far.
        # The result of the last claim.
        self.last = Limited(claimed=[])
        # Positions in lanes before which nothing was for this worker, and until when they are used.
        self._behind: dict[tuple[str, str], Place] = {}
        self._behind_until = 0.0
        # When the next token comes for tasks that wait for one, as far as looks and claims have
        # shown.
        self._opens_at = math.inf

    def see(self, lanes: set[tuple[str, str]], opens_in: float | None = None) -> None:
        """Enter the result of a look: open lanes, and the seconds until a token comes."""
        self._open, self.has_news = lanes, bool(lanes)
        self._remember(lanes)
        if opens_in is not None:
            # The worker that took the last tokens knows it too, and may be there first.
            self._opens_at = min(self._opens_at, time.monotonic() + opens_in + TOKEN_LATER)

    def see_beside(self, lanes: set[tuple[str, str]], opens_in: float | None) -> None:
        """Enter the result of a look after a claim that has served the known lanes."""
        known = {*self._known, NEWS}
        self.see(lanes, opens_in)
        self.has_news = not lanes <= known

    def take_opens_at(self) -> float:
        """Return when the next token comes, once: by then there is another look."""
        opens_at, self._opens_at = self._opens_at, math.inf
        return opens_at

    def is_next(self, outcomes: Iterable[Outcome]) -> bool:
        """Return whether partitions may be open, or these outcomes free places."""
        return bool(self._open) or any(outcome.lease_id in self._held for outcome in outcomes)

    def passing(
        self, connection: BaseDatabaseWrapper, outcomes: Iterable[Outcome], want: int
    ) -> dict[int, str]:
        """Return up to `want` ending leases whose places may pass on, with their partitions.

        All leases that end are dropped.
        """
        found: dict[int, str] = {}
        can_pass = is_postgresql(connection)
        for outcome in outcomes:
            partition = self._held.pop(outcome.lease_id, None)
            is_success = can_pass and outcome.kind == OutcomeKind.SUCCEEDED
            if partition is not None and is_success and len(found) < want:
                found[outcome.lease_id] = partition
        return found

    def passing_terms(self, unknown: list[str], *, want: int) -> PassingTerms:
        """Return the terms on which places pass on now.

        Unless all partitions were looked at a moment ago, at least half of what the worker wants is
        left for partitions that may be open.
        """
        self._is_recent = time.monotonic() < self._claimed_at + PASSED_ON_FOR
        return PassingTerms(
            worker=self._worker_name,
            served=self._quotas.serving({queue_name for queue_name, _ in self._known}),
            unknown=unknown,
            lease_duration=self._lease_duration,
            most=want if self._is_recent else want // 2,
        )

    def take_passed(
        self, connection: BaseDatabaseWrapper, passed: Passed, *, free: int
    ) -> tuple[list[Claimed], bool]:
        """Enter the tasks that took over places.

        Also return whether to claim from other partitions.
        """
        self.last = Limited(claimed=passed.claimed, has_others=passed.has_others)
        self.has_news = False
        self.is_alone = not (passed.has_news or passed.has_others)
        self.number += len(passed.claimed)
        self._held.update(passed.passing)
        self._remember(lane for lane in self._known if passed.claimed)
        if self.is_alone:
            self._claimed_at = time.monotonic()
            return passed.claimed, False
        has_more = not self._is_recent or len(passed.claimed) < free
        if passed.has_freed and not has_more:  # This worker has enough, so others may take them.
            dialect_for(connection).wake_sleeping(connection, PLACES)
        return passed.claimed, has_more

    def claim(
        self,
        connection: BaseDatabaseWrapper,
        want: int,
        unknown: Sequence[str],
        *,
        room: Room,
        free: int,
        slots: int,
        is_first: bool = False,
        is_within: bool = False,
    ) -> list[Claimed]:
        """Claim up to `want` tasks, of which up to `free` must not be claimed ahead.

        `is_first`: take none that comes after a better ordinary task of its queue. `is_within`:
        claim in the caller's transaction.
        """
        self.has_news = self.is_alone = False
        self.last = Limited(claimed=[])
        want = min(want, free + AHEAD * slots)
        if want <= 0:
            return []
        now = self._claimed_at = time.monotonic()
        for lane in [lane for lane, at in self._known.items() if at < now - REMEMBERED]:
            del self._known[lane]
        if now >= self._behind_until:
            self._behind.clear()
            self._behind_until = now + PASSED_FOR
        # Imported here, so that a worker's first claim does not wait for it.
        from taskqueue.engine.limits.claiming import claim_limited

        # Without the outcomes: others would wait for their recording too.
        waits = self._vain >= PATIENT_AFTER and not is_within
        self.last = limited = claim_limited(
            connection,
            self._claimant(room),
            lanes={*self._open, *self._known},
            want=want,
            free=free,
            unknown=unknown,
            lease_duration=self._lease_duration,
            is_first=is_first,
            is_within=is_within,
            waits=waits,
            behind=self._behind,
        )
        self._opens_at = min(self._opens_at, limited.opens_at)
        self._vain = self._vain + 1 if limited.is_left and not limited.claimed else 0
        self._remember(limited.opened)
        self.number += len(limited.claimed)
        if limited.claimed:
            self._remember(self._open)
            if len(self._held) > MOST_HELD:
                self._held.clear()
            self._held.update((row.lease_id, None) for row in limited.claimed)
            self._held.update(limited.passing)
        elif not limited.is_left:
            self._open = set()  # Until a look says otherwise.
        return limited.claimed

    def _remember(self, lanes: Iterable[tuple[str, str]]) -> None:
        self._known |= dict.fromkeys(set(lanes) - {NEWS}, time.monotonic())

    def _claimant(self, room: Room) -> Claimant:
        """Return this worker as a claimant within this room."""
        return Claimant(
            name=self._worker_name,
            host=self._host,
            tags=self._tags,
            serving=lambda names: [
                name for name in self._quotas.serving(names) if room.is_in(name)
            ],
            quotas=lambda names, size: room.bounded(self._quotas.quotas(names, size)),
        )
