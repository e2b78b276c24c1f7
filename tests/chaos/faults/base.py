"""The base class of faults."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from tests.chaos.fleet import CRASH_DELAY, LEASE, TAKEOVER_INTERVAL
from tests.chaos.history import History
from tests.chaos.stage import Stage

BOTH = frozenset({"postgresql", "sqlite"})
POSTGRESQL = frozenset({"postgresql"})
SQLITE = frozenset({"sqlite"})

FAULTS: dict[str, type[Fault]] = {}


class Fault:
    """One row of the fault table: what is done, and what must come of it.

    The load runs while `strike` does its work; afterwards all tasks must end within `healing`
    seconds. What a subclass adds in `look` comes on top of the checker's invariants.
    """

    name: ClassVar[str]
    expectation: ClassVar[str]
    databases: ClassVar[frozenset[str]] = BOTH
    is_quick: ClassVar[bool] = False
    share: ClassVar[float] = 1.0
    """Its part of the tasks, where the fault makes everything slower: less than 1."""
    seconds: ClassVar[float] = 6.0
    """For how long the load lasts."""
    healing: ClassVar[float] = 60.0
    lease: ClassVar[float] = LEASE
    takeover_limit: ClassVar[float | None] = None
    """What the 99th percentile of takeovers may be, in seconds after the hit."""
    also_ends: ClassVar[frozenset[str]] = frozenset()
    """Statuses in which a task of any kind may end by this fault."""
    server_settings: ClassVar[dict[str, Any]] = {}
    fleet: ClassVar[tuple[tuple[str, int], ...]] = (("process", 2), ("thread", 2), ("process", 1))

    def __init_subclass__(cls) -> None:
        if "name" in cls.__dict__:
            FAULTS[cls.name] = cls

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    @property
    def chance(self) -> random.Random:
        """What the seed decides."""
        return self.stage.chance

    @classmethod
    def obstacle(cls) -> str:
        """Why it cannot be done on this machine; empty where it can."""
        return ""

    def prepare(self) -> None:
        """Before the load: workers, and kinds of tasks of its own."""
        self.stage.start_fleet(*self.fleet)

    def strike(self) -> None:
        """Do it, and heal it."""
        raise NotImplementedError

    def amend(self, history: History) -> History:
        """Leave out of the history what this fault makes unavoidable; say what and why."""
        return history

    def violations(self) -> Iterator[tuple[int, str]]:
        """What breaks invariants that are asked of this fault alone, by their numbers."""
        return iter(())

    def look(self) -> Iterator[str]:
        """What is wrong, beyond the invariants."""
        return iter(())

    def note(self) -> str:
        """Figures for the line below its row."""
        return ""


TAKEN_OVER = LEASE + TAKEOVER_INTERVAL + CRASH_DELAY + 2.0
"""Seconds: a lease, a scan and the delay after a crash, and two for a busy machine. What it keeps
from a process that does next to nothing is not counted, but whoever takes over has more to do."""


def too_often(logs: Iterable[str], phrase: str, most: int) -> Iterator[str]:
    """A log that repeats itself."""
    for number, log in enumerate(logs, 1):
        if log.count(phrase) > most:
            yield f"worker {number} says {phrase!r} {log.count(phrase)} times, not at most {most}"
