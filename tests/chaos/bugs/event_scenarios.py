"""The small runs of events."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any

from django.db import connection, transaction

from taskqueue.core.states import FINISHED
from taskqueue.models import Event, Task
from tests.chaos.bugs import bodies
from tests.chaos.bugs.trial import Trial
from tests.chaos.event_bodies import CANARY, hear, listen, tell, tell_many
from tests.chaos.history import Death, Fault
from tests.events.steps import are_numbered
from tests.worker_process import wait_until

WIDE = 14
"""Slots whose successes come together, more than a worker leaves to triggers."""


def overlapping_enqueues(trial: Trial) -> None:
    """A transaction stays open whose event is older than those that are numbered meanwhile."""
    trial.lengthen_leases()
    trial.heard = listen("task.enqueued")
    trial.start_workers(2)
    is_open, may_commit = threading.Event(), threading.Event()

    def enqueue_slowly() -> None:
        try:
            with transaction.atomic():
                tell.enqueue(str(trial.journal), CANARY)
                is_open.set()
                may_commit.wait(60)
        finally:
            connection.close()

    slow = threading.Thread(target=enqueue_slowly)
    slow.start()
    try:
        trial.wait_for(is_open.is_set)
        _tell(trial, 5)
        ends = Event.objects.filter(kind="task.succeeded", name=tell.name, seq__isnull=False)
        trial.wait_for(lambda: ends.count() == 5)
    finally:
        may_commit.set()
        slow.join()
    _settle(trial)


def pumps_at_once(trial: Trial) -> None:
    """Several workers number the events of many tasks."""
    trial.lengthen_leases()
    trial.heard = listen("task.enqueued")
    trial.start_workers(3, 2)
    for _ in range(10):
        _tell(trial, 6)
        time.sleep(0.1)
    _settle(trial)


def killed_pump(trial: Trial) -> None:
    """The worker that numbers events is killed, if it can be between numbers and effects."""
    trial.lengthen_leases()
    trial.heard = listen("task.enqueued")
    worker = trial.start_worker(2)
    _tell(trial, 5)
    trial.give_time(_is_torn, 1.0)
    began = time.time()
    worker.kill()
    trial.deaths.append(Death(trial.name_of(worker), began))
    trial.faults.append(Fault("kill", began, time.time(), (trial.name_of(worker),)))
    trial.start_worker(2)
    _settle(trial)


def many_ends_at_once(trial: Trial) -> None:
    """A worker is frozen with many successes in its ear, and records them together."""
    trial.lengthen_leases()
    trial.heard = listen("task.enqueued")
    worker = trial.start_worker(WIDE)
    go = trial.folder / "go"
    for _ in range(WIDE):
        trial.enqueue(bodies.leave_after, str(go))
    trial.wait_for(lambda: trial.marks() == WIDE)
    began = time.time()
    worker.suspend()
    go.touch()
    trial.wait_for(lambda: trial.marks("left") == WIDE)
    worker.resume()
    trial.faults.append(Fault("freeze", began, time.time(), (trial.name_of(worker),)))
    _settle(trial)


def bulk_enqueues(trial: Trial) -> None:
    """Many tasks are enqueued at once: some are taken back, of others the client is gone."""
    trial.lengthen_leases()
    trial.heard = listen("task.enqueued")
    trial.start_worker(4)
    trial.enqueue(tell_many, CANARY, WIDE)
    trial.wait_for(lambda: Task.objects.filter(name=tell.name).count() == WIDE)
    _settle(trial)


def late_subscription(trial: Trial) -> None:
    """Somebody subscribes while a worker runs that was wanted to tell of nothing."""
    trial.lengthen_leases()
    trial.start_worker(2)
    _tell(trial, 1)
    trial.wait_for(lambda: Task.objects.filter(status="succeeded").exists())
    heard = listen("task.enqueued")

    def is_known() -> bool:
        _tell(trial, 1)
        return Event.objects.filter(kind="task.started").exists()

    with suppress(AssertionError):
        wait_until(is_known, 8 if trial.bug else 60, what="a start")
    trial.heard = heard._replace(since=time.time())
    _tell(trial, 5)
    _settle(trial)


def _tell(trial: Trial, count: int) -> None:
    for _ in range(count):
        trial.enqueue(tell, CANARY)


def _is_torn() -> bool:
    """Whether events have numbers without effects, or effects without numbers.

    Both counts only grow, so that the one that was asked for first must not be the greater.
    """
    numbered: Any = Event.objects.filter(
        kind="task.enqueued", name=tell.name, seq__isnull=False
    ).count
    handled: Any = Task.objects.filter(name=hear.name).count
    first = handled()
    if first > numbered():
        return True
    first = numbered()
    return bool(first > handled())


def _settle(trial: Trial) -> None:
    """Wait until all tasks have ended and all events have numbers; with a bug, not for long."""
    trial.settle(20)

    def is_quiet() -> bool:
        return are_numbered() and not Task.objects.exclude(status__in=FINISHED).exists()

    with suppress(AssertionError):
        wait_until(is_quiet, 6 if trial.bug else 60, what="numbers")
