"""Workers of this host whose processes have ended: their leases end at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.log_text import one_line
from taskqueue.engine.failures import log_taken_over
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.takeover import end_departed, known_incarnations
from taskqueue.engine.tally import Tally
from taskqueue.worker.duties.duty import Timed
from taskqueue.worker.presence import forget, forget_in_time, others, proof_of_end

logger = logging.getLogger("taskqueue.worker")

STRANGERS_INTERVAL = 3600.0


class Departures:
    """Looks for them; a look finds nothing to ask the database as long as none has died here."""

    def __init__(self, policy: EndPolicy, tally: Tally) -> None:
        self._policy = policy
        self._tally = tally
        # Those that this database does not know: they are asked for once an hour.
        self._strangers: set[UUID] = set()
        self._asked_at = time.monotonic()

    def step(self, connection: BaseDatabaseWrapper) -> int:
        """End what workers held that have ended on this host; how many leases that were."""
        there = others()
        if time.monotonic() - self._asked_at > STRANGERS_INTERVAL:
            self._asked_at = time.monotonic()
            self._strangers = set()
        self._strangers &= there
        ended = [
            incarnation
            for incarnation in sorted(there - self._strangers)
            if _has_ended(incarnation)
        ]
        if not ended:
            return 0
        known = known_incarnations(connection, ended)
        for incarnation in set(ended) - known:
            self._strangers.add(incarnation)
            forget_in_time(incarnation)
        return sum(self._end(connection, known))

    def _end(self, connection: BaseDatabaseWrapper, known: Iterable[UUID]) -> Iterator[int]:
        for incarnation in sorted(known):
            with proof_of_end(incarnation) as is_proven:
                if not is_proven:
                    continue
                departed = end_departed(
                    connection, incarnation, policy=self._policy, tally=self._tally
                )
                if departed.is_done:
                    forget(incarnation)
            if departed.is_done or departed.lost:
                logger.warning(
                    "Worker has ended on this host name=%s leases=%s",
                    one_line(departed.name), len(departed.lost),
                )  # fmt: skip
            log_taken_over(connection, departed.lost)
            yield len(departed.lost)


class EndDeparted(Timed):
    """Ends what workers held whose processes have ended on this host."""

    def __init__(self, policy: EndPolicy, tally: Tally, *, interval: float) -> None:
        super().__init__()
        self.interval = interval
        self._departures = Departures(policy, tally)

    def run(self, connection: BaseDatabaseWrapper) -> bool:
        self._departures.step(connection)
        return False


def _has_ended(incarnation: UUID) -> bool:
    """A look at the lock alone: its file stays."""
    with proof_of_end(incarnation) as is_proven:
        return is_proven
