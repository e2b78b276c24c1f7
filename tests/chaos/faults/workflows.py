"""Workers, the database and patience go away while workflows run."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection

from taskqueue.core.workflow_states import FINAL_WORKFLOWS
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Lease, Task, Workflow
from taskqueue.results.workflows import WorkflowRun, get_workflow
from tests.chaos.faults.base import Fault
from tests.chaos.workflow_bodies import (
    DEPTH,
    WIDTH,
    gathered,
    names_of,
    random_chord,
    random_graph,
    random_tree,
    together,
)
from tests.worker_process import wait_until

GRAPHS_FOR = 400
"""There is one random graph for so many chords, and one at least."""
TREES_FOR = 15
"""There is one tree of calls that bodies find for so many chords."""
SMALLEST_GRAPH, LARGEST_GRAPH = 80, 1000
"""Steps of a random graph, in a short run and in one of 2,000 chords."""
CANCELLED = 0.04
"""How many of the workflows somebody cancels."""


class Enqueuer(threading.Thread):
    """Enqueues workflows at an even pace, however often the database is away."""

    def __init__(self, path: str, chance: random.Random, chords: int, seconds: float) -> None:
        super().__init__(name="workflows", daemon=True)
        self._path = path
        self._chance = chance
        self._chords = chords
        self._seconds = seconds
        self.runs: list[WorkflowRun] = []
        self.errors: Counter[str] = Counter()
        self.error: BaseException | None = None

    def run(self) -> None:
        """Enqueue them all; what the database refused is asked for again."""
        try:
            self._enqueue_all()
        except BaseException as error:
            self.error = error
        finally:
            connection.close()

    def _enqueue_all(self) -> None:
        began = time.monotonic()
        every = min(GRAPHS_FOR, self._chords)
        for number in range(self._chords):
            self._enqueue(random_chord(self._path, self._chance))
            if number % TREES_FOR == TREES_FOR // 2:
                self._enqueue(random_tree(self._path, self._chance))
            if number % every == every // 2:
                size = max(SMALLEST_GRAPH, LARGEST_GRAPH * min(self._chords, 2000) // 2000)
                self._enqueue(random_graph.s(self._path, self._chance.randrange(1 << 30), size))
            time.sleep(max(0.0, began + self._seconds * number / self._chords - time.monotonic()))

    def _enqueue(self, canvas: Any) -> None:
        while True:
            try:
                self.runs.append(canvas.enqueue())
                return
            except DatabaseError as error:
                self.errors[type(error).__name__] += 1
                with suppress(Exception):
                    connection.close()
                time.sleep(0.1)


class WorkflowsMoved(Fault):
    """Workers and the server are killed, and workflows cancelled, while others run."""

    name = "workflows"
    expectation = "each step once, after what it needs; each callback once, with all results"
    is_quick = True
    share = 0.1
    healing = 150.0
    fleet = (("process", 2), ("thread", 4), ("process", 2), ("thread", 2)) * 2

    def prepare(self) -> None:
        super().prepare()
        stage = self.stage
        self._chords = stage.count * 10 // (WIDTH + 1)
        chance = random.Random(self.chance.random())
        self._seconds = max(8.0, self._chords / 40)
        self._enqueuer = Enqueuer(str(stage.journal), chance, self._chords, self._seconds)
        self._cancelled: dict[UUID, float] = {}
        self._counts: Counter[str] = Counter()

    def strike(self) -> None:
        self._enqueuer.start()
        while self._enqueuer.is_alive():
            self.stage.pause(0.2, 2.0)
            self.chance.choice((self._kill_one, self._cancel_some, self._cancel_some, self._stop))()
        self._enqueuer.join()
        if self._enqueuer.error is not None:
            raise self._enqueuer.error
        wait_until(self._has_ended, self.healing, what="the end of all workflows")

    def _kill_one(self) -> None:
        stage = self.stage
        worker, began = self.chance.choice(stage.alive()), stage.now()
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

    def _cancel_some(self) -> None:
        runs = self._enqueuer.runs[-60:]
        for run in self.chance.sample(runs, max(1, int(CANCELLED * len(runs))) if runs else 0):
            try:
                get_workflow(run.id).cancel("enough")
            except (TransitionRefused, DatabaseError):
                continue
            self._cancelled[run.id] = self.stage.now()
            self._counts["cancels"] += 1

    def _has_ended(self) -> bool:
        open_ones = Workflow.objects.exclude(status__in=FINAL_WORKFLOWS)
        return not self.stage.ask(open_ones.exists, True)

    # What came of it

    def violations(self) -> Iterator[tuple[int, str]]:
        yield from ((12, text) for text in self._claimed_after_cancel())
        yield from ((12, text) for text in wrong_chords())
        yield from ((12, text) for text in wrong_trees())

    def _claimed_after_cancel(self) -> Iterator[str]:
        for id, at in self._cancelled.items():
            tasks = Task.objects.filter(step__workflow_id=id)
            for lease in Lease.objects.filter(task_id__in=tasks.values("id")):
                if lease.claimed_at.timestamp() > at:
                    yield f"{lease} was claimed after its workflow {id} was cancelled"

    def look(self) -> Iterator[str]:
        for worker in self.stage.workers:
            for phrase in ("Workflow not advanced", "Workflows not advanced", "deadlock"):
                if phrase in worker.log():
                    yield f"{worker.name} says {phrase!r}"

    def note(self) -> str:
        """What there was, in figures."""
        statuses = Counter(Workflow.objects.values_list("status", flat=True))
        tasks = Task.objects.filter(step_id__isnull=False).count()
        figures = {"workflows": sum(statuses.values()), **statuses, "their tasks": tasks}
        return ", ".join(f"{name} {value}" for name, value in (figures | self._counts).items())


def wrong_trees() -> Iterator[str]:
    """What follows trees, and was not given the results of all leaves, in order."""
    for task in Task.objects.filter(name=gathered.name, status="succeeded"):
        if task.return_value != names_of(DEPTH):
            yield f"{task.id} was given {task.return_value}"


def wrong_chords() -> Iterator[str]:
    """Callbacks of chords that were not given the results of all members, in order."""
    ends = Task.objects.filter(name=together.name, status="succeeded", step_id__isnull=False)
    for task in ends.select_related("step"):
        members = Task.objects.filter(step__workflow_id=task.step.workflow_id)
        values = members.exclude(id=task.id).order_by("step_id", "place")
        expected = list(values.values_list("return_value", flat=True))
        if task.return_value != expected or len(expected) != WIDTH:
            yield f"{task.id} was given {task.return_value}, not {expected}"
