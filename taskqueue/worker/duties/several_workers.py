"""Looking after tasks of several workers: whose worker is gone, and whose deadline passed."""

from __future__ import annotations

import logging
from uuid import UUID

from taskqueue.engine import broadcast, multi_worker
from taskqueue.engine.apart import HAS_APART
from taskqueue.engine.failures import log_failed_tasks
from taskqueue.engine.retention import EndPolicy
from taskqueue.worker.duties.duty import Turn

logger = logging.getLogger("taskqueue.worker")


class LookAfterBroadcasts:
    """Goes through the broadcasts that wait, a batch in each turn."""

    def __init__(self, policy: EndPolicy) -> None:
        self._policy = policy
        self._after: UUID | None = None

    def step(self, turn: Turn) -> float | None:
        if turn.forecast.holds(HAS_APART):
            connection = turn.connection
            released, self._after = broadcast.release_gone(
                connection, policy=self._policy, after=self._after
            )
            if released:
                logger.warning(
                    "Broadcasts no longer wait for workers that ended parts=%s", released
                )
            log_failed_tasks(connection, multi_worker.end_overdue(connection, policy=self._policy))
        return None
