"""How many tasks a worker claims beyond its free slots."""

from __future__ import annotations

WINDOW = 0.04
"""Seconds of work that may wait in the worker."""
MOST_PER_SLOT = 192
MOST = 512
FIRST_GUESS = 0.05
"""Seconds that a body takes, before any has run: too long for a reserve."""
SHORTEST = 0.0002
"""Seconds that the shortest body costs, with what stands around it."""


class Prefetch:
    """Learns how long bodies take, and reserves tens of milliseconds' worth of them.

    Without a reserve, two slots mean batches of two and a tenth of the speed; with one behind long
    bodies, tasks wait here while other workers are idle. So it grows slowly and shrinks at once.
    """

    def __init__(self, setting: int | str) -> None:
        self._fixed = setting if isinstance(setting, int) else None
        self._seconds = FIRST_GUESS

    def learn(self, seconds: float) -> None:
        """A body took that long."""
        weight = 0.5 if seconds > self._seconds else 0.2
        self._seconds += weight * (max(seconds, SHORTEST) - self._seconds)

    def depth(self, slots: int) -> int:
        """How many orders may stand behind the running bodies of a child with that many slots."""
        if self._fixed is not None:
            return self._fixed
        return slots * min(MOST_PER_SLOT, int(WINDOW / max(self._seconds, SHORTEST)))

    def reserve(self, slots: int, stalled: float) -> int:
        """How many tasks to hold beyond the slots, when some body has run for `stalled` already."""
        if self._fixed is not None:
            return self._fixed
        if stalled > WINDOW:
            return 0
        return min(MOST, self.depth(slots))
