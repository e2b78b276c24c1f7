"""An outage of the database: decide when to try again, and what to log."""

from __future__ import annotations

import logging
import random

from taskqueue.core.log_text import one_line
from taskqueue.engine.transient_errors import is_busy

logger = logging.getLogger("taskqueue.worker")

# Seconds between two tries to reach a database that is away.
SHORTEST_RETRY, LONGEST_RETRY = 0.1, 2.0


class Outage:
    """An outage of the database: tries follow each other after growing pauses."""

    def __init__(self) -> None:
        self.is_on = False
        self.retry_at = 0.0
        self._pause = SHORTEST_RETRY

    def begin(self, error: Exception, now: float) -> None:
        """Record that a try has failed: outcomes are kept, and sent again later."""
        if not self.is_on:
            self.is_on = True
            if is_busy(error):
                logger.warning(
                    "Database busy, somebody writes, outcomes are kept error=%s", one_line(error)
                )
            else:
                logger.error("Database away, outcomes are kept error=%s", one_line(error))
        self.retry_at = now + self._pause * (0.5 + random.random())  # noqa: S311
        self._pause = min(LONGEST_RETRY, self._pause * 2)

    def end(self) -> bool:
        """Record that a try has succeeded. Return whether that ends an outage."""
        was_on, self.is_on = self.is_on, False
        self._pause = SHORTEST_RETRY
        if was_on:
            logger.info("Database back")
        return was_on
