"""Workers and the database go away while workflows run, and people lose patience."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator

from django.db import connection

from taskqueue.core.workflow_states import FINAL_WORKFLOWS
from taskqueue.models import Collected, Task, Workflow
from tests.chaos.batch_bodies import digest
from tests.chaos.batch_rows import EventLog
from tests.chaos.faults.base import Fault
from tests.chaos.fleet import LEASE, ChaosWorker
from tests.chaos.history import Fault as FaultRow
from tests.chaos.workflow_bodies import WIDTH
from tests.chaos.workflow_load import Collector, Enqueuer
from tests.chaos.workflow_verbs import Operator
from tests.worker_process import wait_until

CHORDS_A_SECOND = 4
"""That many may be expected of a machine that is busy with other things."""
FREEZES_FROM = 100
"""In runs of so many chords; shorter ones would only wait for the worker to wake."""
MOST_RETRIED_AT_LAST = 30
"""How many of those that did not succeed are retried once everything is quiet."""


class WorkflowsMoved(Fault):
    """Workers and the server go away, while people cancel, pause and retry running workflows."""

    name = "workflows"
    expectation = "each step once, after what it needs; each callback once, with all results"
    is_quick = True
    share = 0.1
    healing = 150.0
    fleet = (("process", 2), ("thread", 4), ("process", 2), ("thread", 2)) * 2

    def prepare(self) -> None:
        super().prepare()
        stage = self.stage
        self._chords = chords = stage.count * 10 // (WIDTH + 1)
        self._seconds = max(8.0, chords / 40)
        path = str(stage.journal)
        self._enqueuer = Enqueuer(path, self._own_chance(), chords, self._seconds)
        log = EventLog(stage.folder / "events")
        self._collector = Collector(log, self._own_chance(), chords, self._seconds)
        self._operator = Operator(self._own_chance(), stage.verbs)
        self._frozen: ChaosWorker | None = None
        self._timer = threading.Timer(0, lambda: None)
        self._counts: Counter[str] = Counter()

    def _own_chance(self) -> random.Random:
        return random.Random(self.chance.random())

    def strike(self) -> None:
        threads = (self._enqueuer, self._collector, self._operator)
        for thread in threads:
            thread.start()
        acts = [self._kill_one, self._stop]
        if self._chords >= FREEZES_FROM:
            acts.append(self._freeze)
        while self._enqueuer.is_alive() or self._collector.is_alive():
            self.stage.pause(0.4, 3.0)
            self.chance.choice(acts)()
        if self._timer.is_alive():
            self._timer.join()
        self._operator.is_over.set()
        for thread in threads:
            thread.join()
            if thread.error is not None:
                raise thread.error
        self._await_end()
        self._counts["retried at last"] = self._operator.retry_ended(MOST_RETRIED_AT_LAST)
        self._await_end()

    def _kill_one(self) -> None:
        stage = self.stage
        worker, began = self.chance.choice(self._awake()), stage.now()
        worker.kill()
        self._counts["kills"] += 1
        stage.start_worker("process" if self.chance.random() < 0.5 else "thread", 3)
        stage.note(self.name, began, worker)

    def _stop(self) -> None:
        """The server goes away for a moment; on SQLite a worker does."""
        stage = self.stage
        server = stage.database.server
        if server is None or self._counts["outages"] >= 3:
            self._kill_one()
            return
        began = stage.now()
        server.stop("immediate")
        stage.pause(0, 1.5)
        server.start()
        connection.close()
        self._counts["outages"] += 1
        stage.note(self.name, began)

    def _freeze(self) -> None:
        """One worker at a time is stopped beyond its lease; a timer wakes it among other faults."""
        if self._timer.is_alive():
            return
        self._frozen = self.chance.choice(self._awake())
        self._frozen.suspend()
        self._counts["freezes"] += 1
        seconds = LEASE + self.chance.uniform(1.0, 3.0)
        self._timer = threading.Timer(seconds, self._thaw, (self._frozen, time.time()))
        self._timer.start()

    def _thaw(self, worker: ChaosWorker, began: float) -> None:
        worker.resume()
        self.stage.faults.append(FaultRow(self.name, began, time.time(), (worker.name,)))

    def _awake(self) -> list[ChaosWorker]:
        frozen = self._frozen if self._timer.is_alive() else None
        return [worker for worker in self.stage.alive() if worker is not frozen]

    def _await_end(self) -> None:
        longest = self.healing + self._chords / CHORDS_A_SECOND
        wait_until(self._has_ended, longest, what="the end of all workflows and batches")

    def _has_ended(self) -> bool:
        open_ones = Workflow.objects.exclude(status__in=FINAL_WORKFLOWS)
        has_more = self.stage.ask(lambda: open_ones.exists() or Collected.objects.exists(), True)
        return not has_more

    # What came of it

    def look(self) -> Iterator[str]:
        for worker in self.stage.workers:
            for phrase in ("Workflow not advanced", "Workflows not advanced", "deadlock"):
                if phrase in worker.log():
                    said = next(line for line in worker.log().splitlines() if phrase in line)
                    yield f"{worker.name} says {said!r}"
        if self._operator.deadlocks:
            yield f"{self._operator.deadlocks} verbs met a deadlock"

    def note(self) -> str:
        """What there was, in figures."""
        statuses = Counter(Workflow.objects.values_list("status", flat=True))
        tasks = Task.objects.filter(step_id__isnull=False).count()
        batches = Task.objects.filter(name=digest.name).count()
        figures = {"workflows": sum(statuses.values()), **statuses, "their tasks": tasks}
        figures |= {"batches": batches, **self._counts, **self._operator.counts}
        return ", ".join(f"{name} {value}" for name, value in figures.items())
