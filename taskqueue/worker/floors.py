"""Floors: where the ready tasks of a queue begin, after dead index entries of claimed tasks.

A claim reads its index from the head of the queue. Until a vacuum, the entries of claimed tasks
remain there, and reading a million of them costs a claim more than its tasks do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.rows import NO_FLOORS

# If a claim without floors takes more seconds than this, the next ones use floors.
SLOW_CLAIM = 0.005
USED_FOR = 10.0  # Seconds, until a claim without floors shows whether they are still needed.
FLOOR_SHARE = 0.05  # The most of its time that a worker spends on finding floors.
SHORTEST_FLOOR = 0.1  # Seconds for which floors are used at least.


class Floors:
    """Tells from where to claim while claims are slow.

    A task that becomes ready below a floor waits until the floor is determined again, or until a
    claim with the floor gets too few tasks and is repeated without it.
    """

    def __init__(self) -> None:
        self._used_until = 0.0
        self._known: Mapping[str, datetime] = NO_FLOORS
        self._known_until = 0.0

    def of(self, connection: BaseDatabaseWrapper, names: Sequence[str]) -> Mapping[str, datetime]:
        """Return the floors of these queues; none while claims are fast."""
        began = time.monotonic()
        if began >= self._used_until:
            return NO_FLOORS
        if began >= self._known_until:
            self._known = dialect_for(connection).earliest_ready(connection, names)
            ended = time.monotonic()
            self._known_until = ended + max(SHORTEST_FLOOR, (ended - began) / FLOOR_SHARE)
        return self._known

    def took(self, seconds: float) -> None:
        """Record how long a claim without floors has taken."""
        if seconds > SLOW_CLAIM:
            self._used_until = time.monotonic() + USED_FOR
