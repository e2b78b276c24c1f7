"""How many tasks a worker claims beyond its free slots."""

from __future__ import annotations

from collections.abc import Sequence

WINDOW = 0.04  # Seconds of work that may wait in the worker.
MAX_PER_SLOT = 384
MAX_PREFETCH = 1024
FIRST_GUESS = 0.05  # The assumed seconds of a body before any has run: too long for a reserve.
SHORTEST_BODY = 0.0001  # The assumed seconds of the shortest body, with the work around it.


class Prefetch:
    """The number of tasks that a worker claims ahead.

    It learns how long bodies take, and reserves tens of milliseconds' worth of them. Without a
    reserve, two slots mean batches of two and a tenth of the speed; with a reserve behind long
    bodies, tasks wait here while other workers are idle. So it grows slowly and shrinks at once.
    """

    def __init__(self, setting: int | str) -> None:
        self._fixed = setting if isinstance(setting, int) else None
        self._seconds = FIRST_GUESS

    def learn(self, seconds: float) -> None:
        """Learn from a body that took that long."""
        weight = 0.5 if seconds > self._seconds else 0.2
        self._seconds += weight * (max(seconds, SHORTEST_BODY) - self._seconds)

    def learn_all(self, seconds: Sequence[float]) -> None:
        """Learn from bodies that took that long, in turn."""
        if max(seconds, default=0.0) > SHORTEST_BODY:
            for each in seconds:
                self.learn(each)
        else:
            self._seconds = SHORTEST_BODY + 0.8 ** len(seconds) * (self._seconds - SHORTEST_BODY)

    def depth(self, slots: int) -> int:
        """Return how many orders may wait behind the running bodies of a child with these slots."""
        if self._fixed is not None:
            return self._fixed
        return slots * min(MAX_PER_SLOT, int(WINDOW / max(self._seconds, SHORTEST_BODY)))

    def reserve(self, slots: int, stalled: float) -> int:
        """Return how many tasks to hold beyond the slots if a body has run for `stalled` so far."""
        if self._fixed is not None:
            return self._fixed
        return 0 if stalled > WINDOW else min(MAX_PREFETCH, self.depth(slots))
