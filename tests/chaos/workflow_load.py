"""Clients that enqueue workflows and collect events in a run, even while the database is away."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from django.db import DatabaseError, connection

from tests.chaos.batch_bodies import collect_some
from tests.chaos.batch_rows import EventLog
from tests.chaos.mixture_bodies import mixture
from tests.chaos.workflow_bodies import (
    family,
    new_key,
    order,
    random_chord,
    random_graph,
    random_tree,
    story,
)

T = TypeVar("T")

GRAPHS_FOR = 400
"""There is one random graph for so many chords, and one at least."""
OTHERS_FOR = 15
"""There is one tree, story, order, family and mixture for so many chords."""
SMALLEST_GRAPH, LARGEST_GRAPH = 80, 1000
"""Steps of a random graph, in a short run and in one of 2,000 chords."""


class Load(threading.Thread):
    """Does something again and again at an even pace, in a thread with its own connection."""

    def __init__(self, name: str, times: int, seconds: float) -> None:
        super().__init__(name=name, daemon=True)
        self._times = times
        self._seconds = seconds
        self.errors: Counter[str] = Counter()
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do it so many times; keep what went wrong."""
        began = time.monotonic()
        try:
            for number in range(self._times):
                self.step(number)
                due = began + self._seconds * number / self._times
                time.sleep(max(0.0, due - time.monotonic()))
        except BaseException as error:
            self.error = error
        finally:
            connection.close()

    def step(self, number: int) -> None:
        """Do it once."""
        raise NotImplementedError

    def insist(self, act: Callable[[], T]) -> T:
        """Do what the database refused again, until it does not."""
        while True:
            try:
                return act()
            except DatabaseError as error:
                self.errors[type(error).__name__] += 1
                with suppress(Exception):
                    connection.close()
                time.sleep(0.1)


class Enqueuer(Load):
    """Enqueues so many chords, and other workflows between them."""

    def __init__(self, path: str, chance: random.Random, chords: int, seconds: float) -> None:
        super().__init__("workflows", chords, seconds)
        self._path = path
        self._chance = chance
        self._chords = chords

    def step(self, number: int) -> None:
        """Enqueue a chord, and at times something else."""
        path, chance = self._path, self._chance
        self._enqueue(random_chord(path, chance))
        if number % OTHERS_FOR == OTHERS_FOR // 2:
            first = chance.randrange(1000)
            keys = [new_key(chance) for _ in range(6)]
            self._enqueue(random_tree(path, chance))
            self._enqueue(story.s(path, first))
            self._enqueue(order.s(path, first, keys[0]))
            self._enqueue(family.s(path, first, keys[1:4]))
            self._enqueue(mixture.s(path, first, chance.randrange(1 << 30), keys[4:]))
        every = min(GRAPHS_FOR, self._chords)
        if number % every == every // 2:
            size = max(SMALLEST_GRAPH, LARGEST_GRAPH * min(self._chords, 2000) // 2000)
            self._enqueue(random_graph.s(path, chance.randrange(1 << 30), size))

    def _enqueue(self, canvas: Any) -> None:
        self.insist(canvas.enqueue)


class Collector(Load):
    """Collects events, and notes what it was told of them."""

    def __init__(self, log: EventLog, chance: random.Random, times: int, seconds: float) -> None:
        super().__init__("events", times, seconds)
        self._log = log
        self._chance = chance
        self._next = 0

    def step(self, number: int) -> None:
        """Collect a few events. Those whose answer was lost stay unknown."""
        count = self._chance.randrange(1, 6)
        try:
            collect_some(self._log, self._chance, self._next, count)
        except DatabaseError as error:
            self.errors[type(error).__name__] += 1
            with suppress(Exception):
                connection.close()
        self._next += count
