"""The summary of a worker: a line for each minute in which an attempt ended."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from taskqueue.worker.meter import Meter

logger = logging.getLogger("taskqueue.worker")

INTERVAL = 60.0
"""Seconds between two lines."""
OUTCOMES = ("succeeded", "failed", "retried", "other")


class Summary:
    """Counts from the meter, which counts for each attempt already."""

    def __init__(self, meter: Meter, running: Callable[[], int], now: float) -> None:
        """`running` tells how many bodies run at this moment."""
        self._meter = meter
        self._running = running
        self._told: Counter[str] = Counter()
        self._told_at = now
        self.next_at = now + INTERVAL

    def step(self, now: float) -> None:
        """Say what has ended since the last line, once it is time."""
        if now < self.next_at:
            return
        ended = self._meter.ended()
        counts = ended - self._told
        if counts:
            logger.info(
                "Attempts ended in_seconds=%.0f succeeded=%s failed=%s retried=%s other=%s "
                "running=%s",
                now - self._told_at,
                *(counts[each] for each in OUTCOMES),
                self._running(),
            )
        self._told, self._told_at = ended, now
        self.next_at = now + INTERVAL

    def end(self, name: str) -> None:
        """Say that the worker has stopped, and what it has done."""
        ended = self._meter.ended()
        logger.info(
            "Worker stopped name=%s succeeded=%s failed=%s retried=%s other=%s",
            name,
            *(ended[each] for each in OUTCOMES),
        )
