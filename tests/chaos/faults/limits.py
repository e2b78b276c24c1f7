"""Workers, children and the database go away while tasks run under limits that people change."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import psutil
from django.db import DatabaseError, connection

from taskqueue import control
from taskqueue.exceptions import LimitDoesNotExist, TransitionRefused
from taskqueue.models import Task
from tests.chaos.faults.base import Fault
from tests.chaos.fleet import LEASE, ChaosWorker
from tests.chaos.limit_bodies import NUMBERS, enqueue_some
from tests.chaos.limit_rows import LimitChange, await_quiet
from tests.chaos.workflow_load import Load

A_SECOND = 120
"""Tasks that are enqueued a second."""
AT_A_TIME = 4
TAGS = "gpu"


class LimitsHeld(Fault):
    """Children and workers are killed, frozen and cut off, while limits are changed at random."""

    name = "limits"
    expectation = "never more than the limit, sequences in order, nobody waits beside a place"
    is_quick = True
    share = 0.1
    healing = 120.0
    fleet = (("process", 2), ("thread", 4), ("process", 2), ("thread", 2)) * 2

    def prepare(self) -> None:
        for number, (pool, slots) in enumerate(self.fleet):
            self._start(pool, slots, has_tag=number % 2 == 0, wait_ready=False)
        for worker in self.stage.workers:
            worker.wait_until_ready(90)
        self._tasks = self.stage.count * 10
        self._counts: Counter[str] = Counter()
        self._tagged: set[str] = set()

    def _start(
        self, pool: str, slots: int, *, has_tag: bool, wait_ready: bool = True
    ) -> ChaosWorker:
        tags = ("--tags", TAGS) if has_tag else ()
        return self.stage.start_worker(pool, slots, *tags, wait_ready=wait_ready)

    def strike(self) -> None:
        chance = random.Random(self.chance.random())
        enqueuer = Enqueuer(str(self.stage.journal), chance, self._tasks)
        changer = Changer(self.stage.limit_changes, random.Random(self.chance.random()))
        enqueuer.start()
        changer.start()
        acts = [self._kill_one, self._kill_child, self._stop, self._freeze]
        while enqueuer.is_alive() or self._has_open():
            self.stage.pause(0.5, 3.0)
            if not enqueuer.is_alive() and self._has_only_few():
                break
            self.chance.choice(acts)()
        enqueuer.join()
        changer.is_over = True
        changer.join()
        for thread in (enqueuer, changer):
            if thread.error is not None:
                raise thread.error
        self._counts.update(changer.counts)
        self._await_end()

    def _kill_one(self) -> None:
        stage = self.stage
        place = self.chance.randrange(len(stage.alive()))
        worker, began = stage.alive()[place], stage.now()
        worker.kill()
        self._counts["kills"] += 1
        # Somebody must have the tag.
        self._start("process" if self.chance.random() < 0.5 else "thread", 3, has_tag=True)
        stage.note(self.name, began, worker)

    def _kill_child(self) -> None:
        worker = self.chance.choice(self.stage.alive())
        with suppress(psutil.NoSuchProcess):
            children = psutil.Process(worker.pid).children(recursive=True)
            if children:
                self.chance.choice(children).kill()
                self._counts["children killed"] += 1

    def _stop(self) -> None:
        """The server goes away for a moment, or ends all sessions; on SQLite a worker does."""
        stage = self.stage
        server = stage.database.server
        if server is None:
            self._kill_one()
            return
        began = stage.now()
        if self._counts["outages"] < 2 and self.chance.random() < 0.5:
            server.stop("immediate")
            stage.pause(0, 1.5)
            server.start()
            connection.close()
            self._counts["outages"] += 1
        else:
            with suppress(DatabaseError):
                stage.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            self._counts["cuts"] += 1
        stage.note(self.name, began)

    def _freeze(self) -> None:
        """A worker's parent is stopped, beyond its lease or not so long.

        Not its children: one that is frozen in a body may still write a line when it wakes.
        """
        if self._counts["freezes"] >= self._tasks / 250:
            return
        worker, began = self.chance.choice(self.stage.alive()), self.stage.now()
        worker.suspend()
        time.sleep(self.chance.choice((1.0, LEASE + 1.0)))
        worker.resume()
        self._counts["freezes"] += 1
        self.stage.note(self.name, began, worker)

    def _has_open(self) -> bool:
        return self.stage.open_tasks() != 0

    def _has_only_few(self) -> bool:
        return 0 <= self.stage.open_tasks() < self._tasks / 10

    def _await_end(self) -> None:
        deadline = time.monotonic() + self.healing
        while self.stage.open_tasks() != 0 and time.monotonic() < deadline:
            time.sleep(0.2)
        with suppress(DatabaseError):
            await_quiet(20)

    def look(self) -> Iterator[str]:
        for worker in self.stage.workers:
            for phrase in ("deadlock", "Batch refused"):
                if phrase in worker.log():
                    said = next(line for line in worker.log().splitlines() if phrase in line)
                    yield f"{worker.name} says {said!r}"

    def note(self) -> str:
        """What there was, in figures."""
        names = Counter(Task.objects.filter(route=2).values_list("name", flat=True))
        figures = {name.rpartition(".")[2]: number for name, number in sorted(names.items())}
        return ", ".join(f"{name} {value}" for name, value in {**figures, **self._counts}.items())


class Enqueuer(Load):
    """Enqueues so many tasks."""

    def __init__(self, path: str, chance: random.Random, tasks: int) -> None:
        times = max(1, tasks // AT_A_TIME)
        super().__init__("limited", times, tasks / A_SECOND)
        self._path, self._chance, self._left = path, chance, tasks

    def step(self, number: int) -> None:
        """Enqueue a few, if any are left to enqueue."""
        if self._left > 0:
            self._left -= self.insist(lambda: enqueue_some(self._path, self._chance, self._left))


class Changer(Load):
    """Changes limits at random, and takes all of it back in the end."""

    def __init__(self, changes: list[LimitChange], chance: random.Random) -> None:
        super().__init__("changer", 1, 0.0)
        self._changes, self._chance = changes, chance
        self.is_over = False
        self.counts: Counter[str] = Counter()

    def step(self, number: int) -> None:
        """Go on until it is over."""
        while not self.is_over:
            time.sleep(self._chance.uniform(0.2, 1.5))
            name, declared = self._chance.choice(list(NUMBERS.items()))
            choices = (1, declared // 2, declared * 2, None, None)
            # Sometimes nothing may run for a moment.
            self._change(name, 0 if self._chance.random() < 0.1 else self._chance.choice(choices))
            if self._changes and self._changes[-1].number == 0:
                time.sleep(0.3)
                self._change(name, None)
        for name in NUMBERS:
            self._change(name, None)

    def _change(self, name: str, number: int | None) -> None:
        if number == 0 and name == "chaos.rate":
            number = 1
        asked_at = time.time()
        made = self.insist(lambda: self._try(name, number))
        if made:
            self._changes.append(LimitChange(name, number, asked_at, time.time()))
            self.counts["changes"] += 1

    def _try(self, name: str, number: int | None) -> bool:
        try:
            if number is None:
                control.reset_limit(name)
            elif name == "chaos.rate":
                control.override_limit(name, rate=f"{number}/s")
            else:
                control.override_limit(name, concurrency=number)
        except LimitDoesNotExist:
            return False
        except TransitionRefused:
            # It was reset already, or by a try whose answer was lost.
            return True
        return True
