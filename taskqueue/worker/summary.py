"""Summaries of a worker's work: a log line a minute, and a progress line while it drains."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter

from taskqueue.worker.meter import Meter

logger = logging.getLogger("taskqueue.worker")

INTERVAL = 60.0  # Seconds between two lines.
OUTCOMES = ("succeeded", "failed", "retried", "other")
INTERVAL_TERMINAL, INTERVAL_FILE = 0.2, 2.0


class Summary:
    """Logs the difference between two looks at the meter."""

    def __init__(self, meter: Meter, now: float) -> None:
        self._meter = meter
        self._logged: Counter[str] = Counter()
        self._logged_at = now
        self.next_at = now + INTERVAL

    def step(self, now: float) -> None:
        """Log the attempts that have ended since the last line, once it is time."""
        if now < self.next_at:
            return
        ended = self._meter.ended()
        counts = ended - self._logged
        if counts:
            logger.info(
                "Attempts ended in_seconds=%.0f succeeded=%s failed=%s retried=%s other=%s "
                "running=%s",
                now - self._logged_at,
                *(counts[outcome] for outcome in OUTCOMES),
                self._meter.occupancy().busy,
            )
        self._logged, self._logged_at = ended, now
        self.next_at = now + INTERVAL

    def end(self, name: str) -> None:
        """Log that the worker has stopped, with the counts of its attempts."""
        ended = self._meter.ended()
        logger.info(
            "Worker stopped name=%s succeeded=%s failed=%s retried=%s other=%s",
            name,
            *(ended[outcome] for outcome in OUTCOMES),
        )


class ProgressLine:
    """Counts recorded tasks, and shows the counts from time to time."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._began = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._shown_at = 0.0

    def count(self, status: str) -> None:
        """Count a recorded task."""
        self._counts[status] += 1
        now = time.monotonic()
        interval = INTERVAL_TERMINAL if self._is_terminal else INTERVAL_FILE
        if now - self._shown_at >= interval:
            self._show(now)

    def end(self) -> None:
        """Show the final counts."""
        self._show(time.monotonic())
        if self._is_terminal:
            sys.stderr.write("\n")

    def _show(self, now: float) -> None:
        self._shown_at = now
        total = sum(self._counts.values())
        seconds = max(now - self._began, 1e-6)
        parts = ", ".join(f"{count:,} {status}" for status, count in sorted(self._counts.items()))
        line = f"{total:,} recorded in {seconds:.1f} s ({total / seconds:,.0f}/s): {parts or '-'}"
        sys.stderr.write(f"\r{line:<78}" if self._is_terminal else f"{line}\n")
        sys.stderr.flush()
