"""The race: schedulers are started, killed and replaced until the simulated time is over."""

from __future__ import annotations

import gc
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess

from django.db import connection

from taskqueue.declarations.declared_schedules import check_scheduled
from taskqueue.declarations.scheduled import Scheduled
from taskqueue.engine.schedules.editing import fields_of
from taskqueue.models import Schedule
from tests.rules.oracle import moments_of_walls, offsets
from tests.sample.tasks import noop
from tests.schedules.year.plans import Plan
from tests.schedules.year.racer import end_tasks, race
from tests.schedules.year.shared import FORK, Shared

RACERS = 3
LOOK = 0.01
"""Seconds between two looks at who has died."""


class TooSlow(Exception):
    """The race did not end in the time that it was given."""


@dataclass(kw_only=True)
class Facts:
    """What happened."""

    seed: int
    seconds: float = 0.0
    started: int = 0
    killed: int = 0
    """From outside, at any moment."""
    died: int = 0
    """In the midst of a transaction, between two statements."""
    retries: int = 0
    errors: int = 0
    turns: int = 0
    ended_with: tuple[int, ...] = ()
    """Exit codes of those that nobody had killed, where they are not 0."""


def create_schedules(plan: Plan, *, prefix: str = "") -> dict[str, int]:
    """Create the rows, which count from their beginnings on; their ids by name.

    `prefix` tells their names from those of another race on the same database.
    """
    ids = {}
    for entry in plan.entries:
        rule = entry.rule()
        declared = Scheduled(rule, missed="all", overlap=entry.overlap)
        check_scheduled(declared, noop)
        # Not by the verb: it refuses a rule whose times have all passed.
        schedule = Schedule.objects.create(
            name=prefix + entry.name,
            served_until=entry.since,
            next_at=rule.after(entry.since),
            **fields_of(declared, noop),
        )
        ids[entry.name] = schedule.id
    return ids


class Race:
    """Three schedulers at a time, and one who ends tasks; `run` them to the end of the plan."""

    def __init__(self, plan: Plan, *, report: Callable[[str], object] = lambda text: None) -> None:
        self._plan = plan
        self._report = report
        self._chance = random.Random(plan.seed)
        self._shared = Shared(plan.since)
        self._racers: list[BaseProcess] = []
        self._ender: BaseProcess | None = None
        self._ended_with: list[int] = []
        self.facts = Facts(seed=plan.seed)

    def run(self) -> Facts:
        """Race. Raises `TooSlow`; whatever happens, no process is left."""
        began = time.monotonic()
        connection.close()  # A forked process must not share its socket.
        _travel_light()
        try:
            self._ender = self._started(end_tasks)
            self._go_on(began)
        finally:
            self._shared.end()
            self._end()
            gc.unfreeze()
        shared = self._shared
        self.facts.seconds = time.monotonic() - began
        self.facts.died, self.facts.retries = shared.fuses, shared.retries
        self.facts.errors, self.facts.turns = shared.errors, shared.turns
        self.facts.ended_with = tuple(self._ended_with)
        return self.facts

    def _go_on(self, began: float) -> None:
        kill_at = self._next_kill()
        shown_at = began
        while not self._shared.is_over:
            now = time.monotonic()
            if now - began > self._plan.longest:
                raise TooSlow(f"After {self._plan.longest:g} s it is {self._shared.clock}.")
            self._replace()
            if self._shared.writes >= kill_at:
                self._kill()
                kill_at = self._next_kill()
            if now - shown_at > 10:
                shown_at = now
                self._show(now - began)
            time.sleep(LOOK)

    def _next_kill(self) -> float:
        return self._shared.writes + self._chance.expovariate(1 / self._plan.kill_every)

    def _kill(self) -> None:
        if not self._racers:
            return
        victims = (
            self._racers if self._chance.random() < 0.1 else [self._chance.choice(self._racers)]
        )
        for racer in victims:
            racer.kill()
            self.facts.killed += 1

    def _replace(self) -> None:
        for racer in [racer for racer in self._racers if racer.exitcode is not None]:
            self._racers.remove(racer)
            self._note(racer)
        while len(self._racers) < RACERS:
            self._racers.append(self._started(race))
            self.facts.started += 1

    def _started(self, what: Callable[[Plan, Shared, int], None]) -> BaseProcess:
        seed = self._chance.getrandbits(32)
        process = FORK.Process(target=what, args=(self._plan, self._shared, seed), daemon=True)
        process.start()
        return process

    def _note(self, racer: BaseProcess) -> None:
        if racer.exitcode not in (0, -signal.SIGKILL):
            self._ended_with.append(int(racer.exitcode or 0))

    def _show(self, seconds: float) -> None:
        clock = self._shared.clock
        killed = self.facts.killed + self._shared.fuses
        self._report(f"{seconds:5.0f} s  {clock:%Y-%m-%d %H:%M}  {killed} killed")

    def _end(self) -> None:
        processes = [*self._racers, *([self._ender] if self._ender else [])]
        for process in processes:
            process.join(10)
            with suppress(ProcessLookupError):
                process.kill()
            process.join(10)
            self._note(process)


def _travel_light() -> None:
    """Let go of what the oracle keeps, for every process that is forked would copy it."""
    moments_of_walls.cache_clear()
    offsets.cache_clear()
    gc.collect()
    gc.freeze()
