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

# Tasks for each slot that are claimed ahead of free slots. What waits here takes places that other
# workers could use.
AHEAD = 2
REMEMBERED = 10.0  # Seconds for which a lane is served that had no open partition since.
PATIENT_AFTER = 3  # Claims in a row that got nothing for others' sake: the next one waits for them.
MOST_HELD = 10_000  # Leases that are remembered: some end without the worker.
# Seconds after which a worker looks again at the first partitions of a lane, which held only tasks
# that it does not know.
PASSED_FOR = 3.0
# Seconds after a token has come until a worker looks that did not take the last ones.
TOKEN_LATER = 0.005
# Seconds since the last claim of all partitions for which places pass on, whatever else there is.
PASSED_ON_FOR = 0.05


class LimitedClaims:
    """Claims under limits, in transactions of their own or in that which records."""

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
        self._open: set[tuple[str, str]] = set()
        # When a lane was last seen open, or claimed from.
        self._known: dict[tuple[str, str], float] = {}
        # The leases that were claimed here, as far as it is known, with the partition of those
        # whose places may pass on.
        self._held: dict[int, str | None] = {}
        # When all partitions were last looked at, and whether that was a moment before places were
        # last passed on.
        self._claimed_at = -math.inf
        self._is_recent = False
        self._vain = 0  # Claims in a row that got nothing, though something was there.
        # Whether that look came after the last claim.
        self.has_news = False
        # Whether the last claim has seen that there is nothing else, in any lane.
        self.is_alone = False
        self.number = 0  # Tasks that the current request has claimed so far.
        # What the last claim told.
        self.last = Limited(claimed=[])
        # Places in lanes before which nothing was for this worker, and until when they are trusted.
        self._behind: dict[tuple[str, str], Place] = {}
        self._behind_until = 0.0
        # When the next token comes for what waits for one, as far as looks and claims have told.
        self._opens_at = math.inf

    def see(self, lanes: set[tuple[str, str]], opens_in: float | None = None) -> None:
        """Take in what a look has seen: open lanes, and in how many seconds a token comes."""
        self._open, self.has_news = lanes, bool(lanes)
        self._remember(lanes)
        if opens_in is not None:
            # Whoever took the last tokens knows it too, and may be there before.
            self._opens_at = min(self._opens_at, time.monotonic() + opens_in + TOKEN_LATER)

    def see_beside(self, lanes: set[tuple[str, str]], opens_in: float | None) -> None:
        """Take in what a look has seen after a claim that has served the lanes that are known."""
        known = {*self._known, NEWS}
        self.see(lanes, opens_in)
        self.has_news = not lanes <= known

    def take_opens_at(self) -> float:
        """Return when the next token comes, once: by then there is another look."""
        opens_at, self._opens_at = self._opens_at, math.inf
        return opens_at

    def is_next(self, outcomes: Iterable[Outcome]) -> bool:
        """Whether partitions may be open, or these outcomes give places back."""
        return bool(self._open) or any(outcome.lease_id in self._held for outcome in outcomes)

    def passing(
        self, connection: BaseDatabaseWrapper, outcomes: Iterable[Outcome], want: int
    ) -> dict[int, str]:
        """Return leases that end here and whose places may pass on, with their partitions.

        Up to `want`. Lets go of all leases that end.
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
        """Return on which terms places pass on now.

        Unless all partitions were looked at a moment ago, at least half of what the worker wants is
        left for that, where there may be something.
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
        """Take in the tasks that took over places.

        Also whether other partitions are to be claimed from.
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
        if passed.has_freed and not has_more:  # This worker has enough: others may take them.
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
        """Claim up to `want` tasks, of those that must not be claimed ahead up to `free`.

        `is_first`: none that stands behind a better ordinary task of its queue. `is_within`: in the
        caller's transaction.
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
        # Only here: a worker's first claim does not wait for it.
        from taskqueue.engine.limits.claiming import claim_limited

        # Not with what it has recorded, which others would wait for too.
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
