"""The progress line that a draining worker shows."""

from __future__ import annotations

import sys
import time
from collections import Counter

INTERVAL_TERMINAL, INTERVAL_FILE = 0.2, 2.0


class ProgressLine:
    """Counts what was recorded, and says so now and then."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._began = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._shown_at = 0.0

    def count(self, status: str) -> None:
        """A task was recorded."""
        self._counts[status] += 1
        now = time.monotonic()
        interval = INTERVAL_TERMINAL if self._is_terminal else INTERVAL_FILE
        if now - self._shown_at >= interval:
            self._show(now)

    def end(self) -> None:
        """Say the last of it."""
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
