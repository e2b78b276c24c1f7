"""Definitions whose bodies need a database that their child processes cannot reach."""

from __future__ import annotations

import logging
import math
import random

from taskqueue.core.log_text import one_line

logger = logging.getLogger("taskqueue.worker")

# The most seconds between two tries, which are up to half as long again, at random.
LONGEST_PAUSE = 20.0
# The fewest seconds between two log lines: some bodies may reach it, and others not.
LOG_INTERVAL = 60.0


class Unreached:
    """Leaves such definitions to other workers, for growing pauses; other tasks go on."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._pause = 0.0
        self._log_at = -math.inf
        self._is_logged = False
        self.retry_at = math.inf  # When the pause ends; infinite if there is none.

    def begin(self, name: str, error: str, *, shortest: float, now: float) -> None:
        """Record that a body met no database. Attempts that ran side by side begin one pause."""
        self._names.add(name)
        if self.retry_at < math.inf:
            return
        self._pause = min(LONGEST_PAUSE, max(shortest, self._pause * 2))
        pause = self._pause * (1 + random.random() / 2)  # noqa: S311
        self.retry_at = now + pause
        if now >= self._log_at:
            self._log_at, self._is_logged = now + LOG_INTERVAL, True
            logger.error(
                "Children cannot reach the database, tasks wait task=%s retry_in=%.1fs error=%s",
                one_line(name), pause, one_line(error),
            )  # fmt: skip

    def reached(self, name: str) -> None:
        """Record that a body began; if it was one that met no database, the pauses end."""
        if name in self._names:
            self._names.clear()
            self._pause, self.retry_at = 0.0, math.inf
            if self._is_logged:
                self._is_logged = False
                logger.info("Children reach the database again")

    def names(self) -> list[str]:
        """Return the definitions to leave out of claims."""
        return list(self._names) if self.retry_at < math.inf else []

    def takes_turn(self, now: float) -> bool:
        """Return whether a pause is over, so that these definitions may be claimed again."""
        if now < self.retry_at:
            return False
        self.retry_at = math.inf
        return True
