"""Limit how many of a worker's slots a queue or a definition may use at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from taskqueue.worker.quotas import QueueQuotas, Quotas


class Room:
    """How many more tasks of limited queues and definitions a worker may take.

    It belongs to one request, whose claims share it. A missing entry means no limit. `has_bounds`:
    whether there are limits other than definitions that are left to other workers.
    """

    def __init__(
        self, queues: Mapping[str, int], definitions: Mapping[str, int], *, has_bounds: bool = True
    ) -> None:
        self.queues = dict(queues)
        self.definitions = dict(definitions)
        self.has_bounds = has_bounds

    def is_in(self, queue_name: str) -> bool:
        """Return whether any task of this queue may be taken."""
        return self.queues.get(queue_name, 1) > 0

    def bounded(self, quotas: Quotas) -> Quotas:
        """Return the quotas, each limited by the room of its queue."""
        if not self.queues:
            return quotas
        return [(name, min(size, self.queues.get(name, size))) for name, size in quotas]

    @property
    def full(self) -> list[str]:
        """The definitions of which no task may be taken."""
        return [name for name, room in self.definitions.items() if room <= 0]

    @property
    def least(self) -> int:
        """The number of tasks that fits every definition with room; 0 if none has room."""
        return min((room for room in self.definitions.values() if room > 0), default=0)

    def least_of(self, queue_names: Iterable[str], size: int) -> int:
        """Return how many of `size` tasks cannot exceed any limit, whatever they are."""
        rooms = [self.queues[name] for name in queue_names if name in self.queues]
        return max(0, min([size, *rooms, *filter(None, [self.least])]))

    def reopens(self, last: Room) -> bool:
        """Return whether tasks may be taken of something for which `last` had no room."""
        return any(room > 0 >= last.queues.get(name, 1) for name, room in self.queues.items()) or (
            any(
                room > 0 >= last.definitions.get(name, 1) for name, room in self.definitions.items()
            )
        )

    def take(self, tasks: Iterable[Any]) -> None:
        """Subtract these tasks."""
        if not (self.queues or self.definitions):
            return
        for task in tasks:
            if task.queue_name in self.queues:
                self.queues[task.queue_name] -= 1
            if task.name in self.definitions:
                self.definitions[task.name] -= 1


NO_LIMITS = Room({}, {}, has_bounds=False)


class SlotLimits:
    """The slot limits of a worker; the main thread may change them."""

    def __init__(self, queues: QueueQuotas, definitions: Mapping[str, int]) -> None:
        self._queues = queues
        self.definitions = dict(definitions)
        # The definitions whose bodies need a process, in a worker that runs bodies in threads.
        self.excluded: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self._queues.slots or self.definitions or self.excluded)

    @property
    def of_definitions(self) -> dict[str, int]:
        """Return the most slots of each limited definition; 0 if other workers run it."""
        return {**self.definitions, **dict.fromkeys(self.excluded, 0)}

    def room(self, held: Iterable[Any]) -> Room:
        """Return the room that is left beside these tasks."""
        queues, definitions = self._queues.slots, self.of_definitions
        if not (queues or definitions):
            return NO_LIMITS
        held = list(held)
        in_queues = Counter(task.queue_name for task in held)
        in_definitions = Counter(task.name for task in held)
        return Room(
            {name: most - in_queues[name] for name, most in queues.items()},
            {name: most - in_definitions[name] for name, most in definitions.items()},
            has_bounds=bool(queues or self.definitions),
        )
