"""Signals to workers, in every phase."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

from taskqueue.models import Lease
from tests.chaos.faults.base import Fault
from tests.chaos.faults.outages import OWN_CRASH
from tests.chaos.fleet import LONG_LEASE
from tests.chaos.history import Term


class Signals(Fault):
    """TERM and INT to workers in a random phase, to the parent or to the group, once or twice."""

    name = "signals"
    expectation = "after TERM or INT nothing is claimed; exit 0 within the grace, no attempt lost"
    is_quick = True
    lease = LONG_LEASE
    seconds = 9.0
    fleet = (("process", 2), ("thread", 2))
    rounds = 4

    def strike(self) -> None:
        stage = self.stage
        self._problems: list[str] = []
        stage.await_load(0.05)
        for number in range(self.rounds):
            # A new one each time: sometimes it is told while it starts.
            worker = stage.start_worker("process", 2, wait_ready=number != 0)
            if number == 0:
                stage.pause(0.1, 1.5)
            victim = worker if number == 0 else self.chance.choice(stage.alive()[:-1])
            stage.pause(0, 0.5)
            is_known = number != 0
            at = stage.now()
            kind = self.chance.choice((signal.SIGTERM, signal.SIGINT))
            tell = self.chance.choice((os.kill, os.killpg))
            for _ in range(self.chance.choice((1, 1, 2))):
                with suppress(ProcessLookupError):
                    tell(victim.pid, kind)
                time.sleep(0.05)
            try:
                code = victim.wait(30)
            except AssertionError:
                said = f"{victim.name} still runs 30 s after {kind.name}"
                self._problems.append(f"{said}: {stage.lock_waits()} {victim.whereabouts()}")
                continue
            # One that was not up yet dies of the signal, as any program does.
            if code and (is_known or code != -kind):
                self._problems.append(f"{victim.name} ended with {code} after {kind.name}")
            victim.is_expendable = not is_known
            stage.terms.append(Term(victim.name, at, stage.now()))
        stage.await_load(1)

    def look(self) -> Iterator[str]:
        yield from self._problems
        lost = Lease.objects.filter(status="lost").exclude(OWN_CRASH)
        if lost.exists():
            yield f"{lost.count()} attempts were lost by workers that were told to end"
