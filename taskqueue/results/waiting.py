"""How long a `wait` sleeps between two looks."""

from __future__ import annotations

import time

from taskqueue.core.retries import seconds_of
from taskqueue.exceptions import Duration

FIRST_LOOK, LONGEST_PAUSE = 0.01, 0.5
"""Seconds between two looks of a `wait`, which grow from the one to the other."""


class Pauses:
    """Growing pauses between looks, until the time is over."""

    def __init__(self, timeout: Duration | None) -> None:
        self._end = None if timeout is None else time.monotonic() + seconds_of(timeout)
        self._timeout, self._pause = timeout, FIRST_LOOK

    def next(self, waited_for: str) -> float:
        """Seconds until the next look. Raises TimeoutError, telling what was waited for."""
        pause, self._pause = self._pause, min(LONGEST_PAUSE, self._pause * 1.5)
        if self._end is None:
            return pause
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{waited_for} after {self._timeout} s.")
        return min(pause, left)
