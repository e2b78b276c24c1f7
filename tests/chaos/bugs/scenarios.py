"""The small runs: each is clean without a bug, and reveals some bugs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db import connection

from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Lease, Task
from taskqueue.results import TaskResult
from tests.chaos.bugs import bodies
from tests.chaos.bugs.trial import Trial
from tests.chaos.history import Fault
from tests.worker_process import WorkerProcess

Scenario = Callable[[Trial], None]


def stale_success(trial: Trial) -> None:
    """A worker is frozen with outcomes in its ear, and wakes when another runs its tasks."""
    _stale(trial, fails=False)


def stale_failure(trial: Trial) -> None:
    """The same with failures."""
    _stale(trial, fails=True)


def _stale(trial: Trial, *, fails: bool) -> None:
    go = trial.folder / "go"
    frozen = _first_of_two(trial)
    for _ in range(3):
        trial.enqueue(bodies.answer_twice, str(go), fails)
    trial.wait_for(lambda: trial.marks() == 6)
    with _frozen(trial, frozen):
        go.touch()
        trial.wait_for(lambda: trial.marks(attempt=2) == 3)
    trial.settle(5)


def stale_part(trial: Trial) -> None:
    """One of two workers is frozen with outcomes in its ear, and wakes when it is given up."""
    go = trial.folder / "go"
    frozen = _first_of_two(trial)
    for _ in range(2):
        trial.enqueue(bodies.answer_twice, str(go), False, workers=2)
    trial.wait_for(lambda: trial.marks() == 5)
    with _frozen(trial, frozen):
        go.touch()
        trial.wait_for(lambda: Lease.objects.filter(status="lost").count() == 2)
    # Others go first: the worker itself may try again after three seconds.
    trial.settle(8)


def _first_of_two(trial: Trial) -> WorkerProcess:
    """The worker that takes what comes now: the other one is busy for less than a lease."""
    workers = trial.start_workers(2, 3)
    for _ in range(3):
        trial.enqueue(bodies.work, 1.7, worker_names=["w2"])
    trial.wait_for(lambda: trial.marks() == 3)
    return workers[0]


def sleeping_worker(trial: Trial) -> None:
    """A worker is frozen beyond its lease while its body runs, and wakes a little later."""
    # On SQLite a takeover follows a second look.
    late = 2.6 if connection.vendor == "sqlite" else 1.6
    trial.start_workers(2)
    trial.enqueue(bodies.work, 4.5 + late)
    trial.wait_for(lambda: trial.marks() == 1)
    with _frozen(trial, trial.holder()):
        (expires_at,) = Lease.objects.values_list("expires_at", flat=True)
        time.sleep(max(0.0, expires_at.timestamp() + late - time.time()))
    trial.settle(10)


@contextmanager
def _frozen(trial: Trial, worker: WorkerProcess) -> Iterator[None]:
    """A worker's parent is stopped meanwhile."""
    began_at = time.time()
    worker.suspend()
    yield
    worker.resume()
    trial.faults.append(Fault("freeze", began_at, time.time(), (trial.name_of(worker),)))


def killed_worker(trial: Trial) -> None:
    """A worker is killed, and another is there."""
    trial.start_workers(2)
    trial.enqueue(bodies.work, 1.5)
    trial.wait_for(lambda: trial.marks() == 1)
    killed = trial.holder()
    trial.faults.append(Fault("kill", time.time(), time.time(), (trial.name_of(killed),)))
    killed.leave_no_proof()
    killed.kill()
    trial.settle(7)


def crowd(trial: Trial) -> None:
    """Three workers, and many short tasks at once."""
    trial.start_workers(3, 2)
    for _ in range(8):
        for _ in range(8):
            trial.enqueue(bodies.work, 0.02)
        time.sleep(0.1)
    trial.settle(6)


def long_bodies(trial: Trial) -> None:
    """Bodies run for longer than a lease."""
    for _ in range(2):
        trial.enqueue(bodies.work, 3.5)
    trial.start_workers(2, 2)
    trial.settle(8)


def giving_up(trial: Trial) -> None:
    """Tasks that crash, fail and sleep."""
    for _ in range(2):
        trial.enqueue(bodies.crash)
        trial.enqueue(bodies.fail)
        trial.enqueue(bodies.snooze_once)
    trial.start_worker(3)
    trial.settle(20)


def hooks_that_crash(trial: Trial) -> None:
    """The process of an atomic body dies just behind its commit."""
    trial.lengthen_leases()
    for _ in range(3):
        trial.enqueue(bodies.crash_behind_commit, is_atomic=True)
    trial.start_worker(3)
    trial.settle(15, all_end=True)


def stops(trial: Trial) -> None:
    """Running tasks are asked to stop: one listens, another does not."""
    for _ in range(2):
        trial.enqueue(bodies.finish_when_asked)
    trial.enqueue(bodies.ignore_stop, 8.0)
    trial.start_worker(3)
    trial.wait_for(lambda: trial.marks() == 3)
    for result in trial.results:
        try:
            result.cancel("enough")
        except TransitionRefused:  # With a bug it may have ended before.
            continue
    trial.settle(9)


def told_to_end(trial: Trial) -> None:
    """A worker with more to do than it can is told to end; another does the rest."""
    trial.start_worker(2, CLAIM_AHEAD=0, SHUTDOWN_TIMEOUT=1)
    trial.enqueue(bodies.work, 3.0)
    for _ in range(20):
        trial.enqueue(bodies.work, 0.2)
    trial.wait_for(lambda: trial.marks() >= 2)
    trial.terminate(trial.workers[0], timeout=6)
    trial.start_worker(4)
    trial.settle(6)


def publishers(trial: Trial) -> None:
    """Clients race for two keys, and roll back at times."""
    trial.lengthen_leases()
    trial.start_workers(2, 3)
    for number in range(4):
        trial.enqueue(
            bodies.publish, str(trial.log.path), 1000 * (number + 1), 16, queue_name="publishers"
        )
    trial.settle(15, all_end=True)


def one_after_the_other(trial: Trial) -> None:
    """Tasks for two workers, of whom the second comes late."""
    trial.lengthen_leases()
    for _ in range(4):
        trial.enqueue(bodies.work, 0.02, workers=2)
    trial.start_worker()
    trial.wait_for(lambda: Lease.objects.filter(status="succeeded").count() >= 4)
    trial.give_time(lambda: Lease.objects.count() > 4, 0.5)
    trial.start_worker()
    trial.settle(15, all_end=True)


def all_at_once(trial: Trial) -> None:
    """Tasks for two workers, and four that are idle."""
    trial.start_workers(4, 2)
    for _ in range(4):
        trial.enqueue(bodies.work, 0.6, workers=2)
    trial.settle(8)


def by_name(trial: Trial) -> None:
    """Tasks for a worker that comes late; the one that is there takes what is for anybody."""
    trial.start_worker(2)
    for _ in range(3):
        for _ in range(2):
            trial.enqueue(bodies.work, 0.0, worker_names=["w2", "w9"])
        # Who has run this has looked there too, and with a bug taken what waits.
        for_anybody = trial.enqueue(bodies.work, 0.0)
        trial.wait_for(partial(_has_succeeded, for_anybody))
    trial.start_worker(2)
    trial.settle(5)


def _has_succeeded(result: TaskResult[Any]) -> bool:
    return Task.objects.filter(id=result.id, status="succeeded").exists()


def broadcast(trial: Trial) -> None:
    """What each of three workers is to run."""
    trial.start_workers(3, 2)
    for _ in range(3):
        trial.enqueue(bodies.work, 0.1, broadcast=True, expects=3)
    trial.settle(6)
