"""Decide whether a child has enough memory left for the `max_memory` of the next body."""

from __future__ import annotations

import os

from taskqueue.declarations import snapshots
from taskqueue.worker.bodies.order import Order
from taskqueue.worker.memory import resident_bytes

# The share of a body's memory that earlier bodies may have left taken.
MOST_TAKEN = 0.5


class MemoryRoom:
    """Compares the memory of this process with that at its start, where a body has a limit."""

    def __init__(self) -> None:
        self._at_first = resident_bytes(os.getpid())

    def has_room(self, order: Order) -> bool:
        """Whether the body may begin here, where others have run before."""
        if "max_memory" not in order.options or self._at_first is None:
            return True
        limit = snapshots.loaded(order.options).get("max_memory")
        size = resident_bytes(os.getpid())
        if not limit or size is None:
            return True
        room = max(0.0, limit * 1e6 - self._at_first)
        return bool(size - self._at_first <= MOST_TAKEN * room)
