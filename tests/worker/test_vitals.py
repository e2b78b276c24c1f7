"""Signs of life of a worker's threads, by which the worker is live, and ready."""

from __future__ import annotations

import threading
import time

import pytest

from taskqueue.worker.vitals import LONGEST_PING, LONGEST_TURN, Vitals

LEASE = 30.0


class Worker:
    """The vitals of a worker whose clock is the test's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        self.obstacle = ""
        self.vitals = Vitals()

    def begin(self, *threads: threading.Thread) -> None:
        self.vitals.begin(lease_seconds=LEASE, threads=[*threads], obstacle=lambda: self.obstacle)
        self.beat()

    def beat(self) -> None:
        self.vitals.turned(self.now)
        self.vitals.renewed(self.now)

    @property
    def health(self) -> tuple[bool, bool]:
        return self.vitals.is_live, self.vitals.is_ready


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    return Worker(monkeypatch)


def test_before_it_is_registered_and_once_it_ends_it_is_live_and_not_ready(worker: Worker) -> None:
    assert worker.health == (True, False)
    worker.now += 10_000
    assert worker.health == (True, False)
    worker.begin()
    assert worker.health == (True, True)
    worker.vitals.end()
    worker.now += 10_000
    assert worker.health == (True, False)


def test_a_main_loop_that_does_not_turn_is_not_live(worker: Worker) -> None:
    worker.begin()
    worker.now += LONGEST_TURN
    worker.vitals.renewed(worker.now)
    assert worker.health == (False, False)
    worker.vitals.turned(worker.now)
    assert worker.health == (True, True)


def test_a_ping_that_never_ends_is_not_live(worker: Worker) -> None:
    worker.begin()
    worker.now += LONGEST_PING - 1
    worker.vitals.turned(worker.now)
    assert worker.health == (True, False), "its lease is over, but the ping may still come back"
    worker.now += 1
    assert worker.health == (False, False)
    worker.vitals.failed()
    assert worker.health == (True, False)
    worker.vitals.renewed(worker.now)
    assert worker.health == (True, True)


def test_a_ping_that_waits_for_its_turn_counts_for_a_lease(worker: Worker) -> None:
    worker.begin()
    worker.now += LEASE - 1
    worker.vitals.turned(worker.now)
    worker.vitals.delayed()
    assert worker.health == (True, True)
    worker.now += 1
    assert worker.health == (True, False)


def test_a_thread_that_is_gone_is_not_live(worker: Worker) -> None:
    gone = threading.Thread()
    gone.start()
    gone.join()
    worker.begin(threading.current_thread(), gone)
    assert worker.health == (False, False)


def test_whatever_keeps_it_from_taking_tasks_is_not_ready(worker: Worker) -> None:
    worker.begin()
    worker.obstacle = "quiet"
    assert worker.health == (True, False)
    assert worker.vitals.live().status == 200
    assert worker.vitals.ready() == (503, "application/json", b'{"status": "unavailable"}')
