"""Processes that are killed, or cannot start."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from uuid import UUID

import psutil
from django.db import connection

from taskqueue import control
from taskqueue.engine.lost import lost_attempts
from taskqueue.models import Lease, Worker
from tests.chaos import tasks
from tests.chaos.faults.base import TAKEN_OVER, Fault
from tests.chaos.faults.outages import OWN_CRASH
from tests.chaos.fleet import LONG_LEASE, ChaosWorker
from tests.worker_process import children_of, templates_of, wait_until

SEEN_DEAD = 5.0
"""Seconds in which others on the host notice the end of a worker's processes, and claim anew."""


class ChildKilled(Fault):
    """SIGKILL children, one after the other."""

    name = "child_killed"
    expectation = "the attempt is lost at once and retried; siblings are unharmed"
    is_quick = True
    lease = LONG_LEASE
    takeover_limit = LONG_LEASE / 2  # Nothing to do with the lease: children have to start.
    fleet = (("process", 2), ("process", 2))
    kills = 6

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.1)
        for _ in range(self.kills):
            worker = self.chance.choice(stage.alive())
            stage.hit(worker, partial(kill_a_child, worker, self.chance))
            stage.pause(0.1, 0.8)

    def look(self) -> Iterator[str]:
        lost = Lease.objects.filter(status="lost").exclude(OWN_CRASH)
        # A child of one slot costs what runs in it, and nothing else.
        if lost.count() > self.kills:
            yield f"{lost.count()} attempts were lost by {self.kills} children that were killed"


class WorkerKilled(Fault):
    """SIGKILL a worker's parent; another one takes its place."""

    name = "worker_killed"
    expectation = "its children die with it; its tasks are taken over as soon as all have ended"
    is_quick = True
    takeover_limit = SEEN_DEAD

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.2)
        stage.pause(0, 1)
        worker = self.chance.choice(stage.workers)
        stage.await_lease(worker)
        began = stage.now()
        children = children_of(worker.pid)
        self.before_the_kill(worker)
        stage.hit(worker, worker.kill)
        stage.await_soon(lambda: not any(map(_lives, children)), 5, what="children's end")
        stage.start_worker("process", 2)
        stage.pause(0.2, 1)
        stage.note(self.name, began, worker)

    def before_the_kill(self, worker: ChaosWorker) -> None:
        """Nothing: others on the host see that it has ended."""


class WorkerKilledElsewhere(WorkerKilled):
    """The same on a host of which the others know nothing."""

    name = "worker_killed_elsewhere"
    expectation = "its children die with it; its tasks are taken over within lease + scan"
    takeover_limit = TAKEN_OVER

    def before_the_kill(self, worker: ChaosWorker) -> None:
        worker.leave_no_proof()


class LongLeasesLost(Fault):
    """A worker of another host is killed that holds leases of a day; somebody frees its tasks."""

    name = "long_leases_lost"
    expectation = "takeover waits for the lease; a stop or a retry by hand ends it at once"
    share = 0.5
    also_ends = frozenset({"cancelled"})
    fleet = (("process", 3), ("process", 2))

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.1)
        worker = self.chance.choice(stage.workers)
        self._have_hold(worker)
        began = stage.now()
        worker.leave_no_proof()
        worker.kill()
        stage.start_worker("process", 2)
        held = self._held(worker)
        wait_until(lambda: self._held(worker) == self._lost(), 60, what="the loss to be seen")
        self._taken = len(held) - len(self._lost())
        for act, ids in ((control.request_stop, held[::2]), (control.retry, held[1::2])):
            for task_id in ids:
                act(task_id, by="chaos", reason="its host is gone")
        self._left = len(self._held(worker))
        stage.note(self.name, began, worker)

    def _have_hold(self, worker: ChaosWorker) -> None:
        """Have it run two tasks on leases of a day."""
        long = tasks.work.using(priority=20, lease_duration=86_400, metadata={"kind": "long"})
        for _ in range(50):
            long.enqueue(str(self.stage.journal), 4.0)
            time.sleep(0.2)
            if len(self._held(worker)) >= 2:
                return
        raise AssertionError(f"{worker.name} did not claim two of 50 tasks")

    def _held(self, worker: ChaosWorker) -> list[UUID]:
        mine = Lease.objects.filter(worker_id=worker.name, status="running")
        long = mine.filter(task__lease_duration__isnull=False).order_by("id")
        return list(long.values_list("task_id", flat=True))

    def _lost(self) -> list[UUID]:
        """Held by a lost worker on a lease that lasts."""
        found = lost_attempts(connection, limit=100)  # type: ignore[arg-type]
        until = self.stage.now() + 3600
        return [each.task_id for each in found if each.expires_at.timestamp() > until]

    def look(self) -> Iterator[str]:
        if self._taken:
            yield f"{self._taken} leases of a day were ended though nobody said so"
        if self._left:
            yield f"{self._left} leases of a day run on that somebody ended"


class ChildrenCannotStart(Fault):
    """The project breaks: a child that dies is replaced by one that cannot be imported."""

    name = "children_cannot_start"
    expectation = "no attempt is spent, leases go back, the worker says what troubles it"

    def prepare(self) -> None:
        stage = self.stage
        self._broken = stage.folder / "broken"
        env = {"CHAOS_BROKEN_CODE": str(self._broken)}
        self._worker = stage.start_worker("process", 2, env=env)
        stage.start_worker("process", 2)

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.2)
        began = stage.now()
        self._broken.touch()
        # The template has imported the code as it was, and sees only files of modules change.
        for child in [*templates_of(self._worker.pid), *children_of(self._worker.pid)]:
            stage.hit(self._worker, partial(_kill, child))
        self._seen = ""
        with suppress(AssertionError):
            self._seen = wait_until(self._trouble, 20, what="a word on what troubles the worker")
        stage.await_load(0.8)
        stage.pause(0, 2)
        self._broken.unlink()
        stage.note(self.name, began, self._worker)
        with suppress(AssertionError):
            wait_until(lambda: not self._trouble(), 60, what="the end of the trouble")
        self._still = self._trouble()

    def _trouble(self) -> str:
        row = Worker.objects.get(name=self._worker.name)
        return str(row.trouble)

    def look(self) -> Iterator[str]:
        if "broken on purpose" not in self._seen:
            yield f"the worker's row does not say what troubles it, but {self._seen!r}"
        if self._still:
            yield f"the trouble is over, and the worker's row still says {self._still[:80]!r}"
        lost = Lease.objects.filter(status="lost", worker_id=self._worker.name)
        if lost.exclude(OWN_CRASH).count() > 2:
            yield f"{lost.count()} attempts were spent on children that could not start"


def kill_a_child(worker: ChaosWorker, chance: random.Random) -> None:
    """Kill one of a worker's children, if it has one."""
    children = children_of(worker.pid)
    if children:
        _kill(chance.choice(children))


def _kill(process: psutil.Process) -> None:
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
