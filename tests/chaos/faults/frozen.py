"""Processes that are stopped with SIGSTOP and continued later."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

import psutil

from taskqueue.models import Lease
from tests.chaos.faults.base import TAKEN_OVER, Fault
from tests.chaos.faults.outages import OWN_CRASH, no_crashes
from tests.chaos.fleet import LONG_LEASE, ChaosWorker
from tests.chaos.history import History
from tests.suspending import suspend
from tests.worker_process import children_of, guardian_of

MOMENT = 1.0
"""Seconds within which a process that wakes too late is killed."""
MINUTE = (60.0, 62.0)


class Frozen(Fault):
    """SIGSTOP processes of a worker, then SIGCONT."""

    seconds = 12.0
    frozen_for: ClassVar[tuple[float, float]] = (TAKEN_OVER + 1.0, TAKEN_OVER + 3.0)
    """The least and the most seconds: what it has is to be taken over before it wakes."""

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.1)
        worker = self.chance.choice(stage.workers)
        stage.await_lease(worker)
        began = stage.now()
        self.freeze(worker)
        time.sleep(self.chance.uniform(*self.frozen_for))
        self.thawed_at = time.monotonic()
        self.thaw(worker)
        stage.note(self.name, began, worker)
        stage.await_load(1)

    def freeze(self, worker: ChaosWorker) -> None:
        """Stop some processes of the worker, none of which is writing to SQLite just then."""
        raise NotImplementedError

    def thaw(self, worker: ChaosWorker) -> None:
        """Let them go on."""
        raise NotImplementedError


class ParentFrozen(Frozen):
    """SIGSTOP the parent alone beyond its lease, then SIGCONT."""

    name = "parent_frozen"
    expectation = "its children stop themselves, its tasks are taken over; it registers anew"
    is_quick = True
    takeover_limit = TAKEN_OVER

    def freeze(self, worker: ChaosWorker) -> None:
        self.stage.hit(worker, worker.suspend)

    def thaw(self, worker: ChaosWorker) -> None:
        worker.resume()


class TreeFrozen(Frozen):
    """SIGSTOP a worker with all its processes beyond its lease, then SIGCONT."""

    name = "tree_frozen"
    expectation = "its tasks are taken over; on waking it writes nothing, and goes on"
    is_quick = True
    takeover_limit = TAKEN_OVER

    def freeze(self, worker: ChaosWorker) -> None:
        self.stage.hit(worker, worker.suspend_tree)

    def thaw(self, worker: ChaosWorker) -> None:
        worker.resume_tree()

    def amend(self, history: History) -> History:
        """Children that were frozen too cannot end before they wake; they have a moment to."""
        stale = {(str(task_id), attempt) for hit in self.stage.hits for task_id, attempt in hit[1]}
        lines = tuple(
            line
            for line in history.lines
            if (line.task_id, line.attempt) not in stale
            or not 0 <= line.at - self.thawed_at < MOMENT
        )
        return replace(history, lines=lines)


class ParentFrozenForAMinute(ParentFrozen):
    """SIGSTOP the parent alone for a minute, ten times its lease, then SIGCONT."""

    name = "parent_frozen_for_a_minute"
    is_quick = False
    frozen_for = MINUTE


class TreeFrozenForAMinute(TreeFrozen):
    """SIGSTOP a worker with all its processes for a minute, then SIGCONT."""

    name = "tree_frozen_for_a_minute"
    is_quick = False
    frozen_for = MINUTE


class SomeFrozen(Frozen):
    """SIGSTOP one process of a worker for a minute; its parent goes on."""

    lease = LONG_LEASE
    frozen_for = MINUTE

    def freeze(self, worker: ChaosWorker) -> None:
        self._frozen = self.chosen(worker)
        suspend(lambda: [self._frozen])

    def thaw(self, worker: ChaosWorker) -> None:
        with suppress(psutil.NoSuchProcess):  # The worker may have replaced it.
            self._frozen.send_signal(signal.SIGCONT)

    def chosen(self, worker: ChaosWorker) -> psutil.Process:
        """Return the process to stop."""
        raise NotImplementedError


class ChildFrozen(SomeFrozen):
    """SIGSTOP one child for a minute; its parent goes on."""

    name = "child_frozen"
    expectation = "its worker keeps its leases and its other children work; it goes on as it wakes"
    fleet = (("process", 2), ("process", 2))

    def chosen(self, worker: ChaosWorker) -> psutil.Process:
        return self.chance.choice(children_of(worker.pid))

    def look(self) -> Iterator[str]:
        lost = Lease.objects.filter(status="lost").exclude(OWN_CRASH)
        if lost.count() > 1:
            yield f"{lost.count()} attempts were lost though only one child was frozen"


class GuardianFrozen(SomeFrozen):
    """SIGSTOP a worker's guardian for a minute, then SIGCONT."""

    name = "guardian_frozen"
    expectation = "the work goes on; on waking it ends nobody whose leases were renewed meanwhile"

    def chosen(self, worker: ChaosWorker) -> psutil.Process:
        return guardian_of(worker.pid)

    def look(self) -> Iterator[str]:
        yield from no_crashes()
        if self._frozen.is_running() and self._frozen.status() == psutil.STATUS_STOPPED:
            yield "the guardian is still frozen: the fault was not healed"
