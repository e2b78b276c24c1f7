"""Record on a second connection, in parallel with claims, while many attempts end at once."""

from __future__ import annotations

import logging
import math

from taskqueue.core.log_text import one_line
from taskqueue.core.outcomes import Outcome
from taskqueue.worker.database_thread import DatabaseThread
from taskqueue.worker.dispatch import Dispatcher
from taskqueue.worker.exchange import Exchange

logger = logging.getLogger("taskqueue.worker")

# How many outcomes are worth a separate transaction, and how many free places a claim.
BATCH = 120
LINGER = 0.005  # Seconds for which a first outcome waits for others while the children have work.
LONG_LINGER = 0.02  # The same if a whole batch is soon complete.
# The most outcomes that may wait while a batch is under way: if this worker died, others would run
# the tasks claimed beyond that again.
MOST_UNRECORDED = 10 * BATCH
REST = 60.0  # Seconds without the second connection after it has failed.


class Recorder:
    """Takes full batches of outcomes; fewer are recorded together with the next claim.

    Only one of the two connections writes at a time, so that no line of an attempt is written after
    its end; meanwhile the first one claims. It also finds out whether the database is away, and
    records what the second one could not.
    """

    def __init__(
        self, thread: DatabaseThread, dispatcher: Dispatcher, database: DatabaseThread
    ) -> None:
        self._thread = thread
        self._dispatcher, self._pending = dispatcher, dispatcher.pending
        self._database = database
        self._rests_until = -math.inf
        self._sent_at = -math.inf

    @property
    def is_busy(self) -> bool:
        """Whether a batch is under way."""
        return self._thread.under_way is not None

    @property
    def outcomes(self) -> list[Outcome]:
        """The batch that is under way."""
        return self._thread.outcomes

    @property
    def late_at(self) -> float:
        """When a few free places have waited long enough for the batch under way."""
        return self._sent_at + LONG_LINGER

    def is_batch(self, wanted: int, *, arriving: int = 0) -> bool:
        """Return whether this many free places are worth a claim that records nothing."""
        return wanted > 0 and wanted >= min(BATCH, self._dispatcher.held + arriving)

    def wanted(self, now: float) -> int:
        """Return how many more tasks to claim; none while too many outcomes wait for a batch."""
        batch, unrecorded = self._thread.under_way, len(self._pending.outcomes)
        if batch is not None and not batch.is_recorded:
            # If the batch is recorded, only workflows are still being advanced.
            unrecorded += len(batch.outcomes)
        is_behind = self.is_busy and unrecorded >= MOST_UNRECORDED
        return 0 if is_behind else self._dispatcher.wanted(now)

    def is_to_write(self, now: float, want: int) -> bool:
        """Return whether outcomes are left to the recorder beside a claim of `want` tasks."""
        if self.is_busy:
            return True
        # There may never be a batch: outcomes that have waited long enough are recorded with the
        # claim.
        is_late = any(now >= first.ended + LONG_LINGER for first in self._pending.outcomes[:1])
        return want >= BATCH and self._is_batch_near(now) and not is_late

    def linger(self, now: float) -> float:
        """Return how many seconds a first outcome waits for others."""
        return LONG_LINGER if self._is_batch_near(now) else LINGER

    def send(self, now: float) -> None:
        """Begin to record a batch, if it is full and may be recorded beside the claims."""
        if self.is_busy or len(self._pending.outcomes) < BATCH or not self._is_usable(now):
            return
        first = self._database.under_way
        if first is None or not first.writes:
            outcomes, lines = self._pending.take()
            self._sent_at = now
            notes = self._pending.take_notes(self._dispatcher.pool.running(), now)
            ahead = self._dispatcher.pool.ahead
            self._thread.send(
                Exchange(outcomes=outcomes, lines=lines, notes=notes, claimed_ahead=ahead)
            )

    def report(self, now: float) -> Exchange | None:
        """Return the report of the batch, once it is ready; the next batch is under way by then."""
        report = self._thread.report()
        if report is None:
            return None
        if report.error is None:
            self.send(now)
        else:
            self._rests_until = now + REST
            logger.warning(
                "Second connection failed, the first one records error=%s", one_line(report.error)
            )
        return report

    def _is_usable(self, now: float) -> bool:
        # SQLite has one writer, and other clients need a pooler's connections too.
        return self._database.owns_session and now >= self._rests_until

    def _is_batch_near(self, now: float) -> bool:
        return self._dispatcher.held >= BATCH and self._is_usable(now)
