"""Decide whether a child has enough memory left for the `max_memory` of the next body."""

from __future__ import annotations

import os

from taskqueue.declarations import snapshots
from taskqueue.worker.bodies.order import Order
from taskqueue.worker.memory import resident_bytes

# The share of a body's memory limit that earlier bodies may still occupy.
MOST_TAKEN = 0.5


class MemoryRoom:
    """Compares this process's memory with that at its start, if a body has a limit."""

    def __init__(self) -> None:
        self._at_first = resident_bytes(os.getpid())

    def has_room(self, order: Order) -> bool:
        """Return whether the body may begin here after others have run."""
        if "max_memory" not in order.options or self._at_first is None:
            return True
        options = snapshots.loaded(order.options)
        limit = None if snapshots.misfit(options) else options.get("max_memory")
        size = resident_bytes(os.getpid())
        if not limit or size is None:
            return True
        room = max(0.0, limit * 1e6 - self._at_first)
        return bool(size - self._at_first <= MOST_TAKEN * room)
