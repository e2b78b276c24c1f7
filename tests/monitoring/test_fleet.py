"""The workers, and whether they live."""

from __future__ import annotations

from datetime import timedelta

import pytest

from taskqueue.monitoring.read_models.worker import read_workers
from tests.monitoring.rows import MINUTE, ago, make_running, make_worker

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("running", "active"), ("quiet", "quiet"), ("stopping", "draining"), ("lost", "lost"),
        ("stopped", "stopped"),
    ],
)  # fmt: skip
def test_a_worker_is_in_the_state_that_it_told_last(status: str, state: str) -> None:
    make_worker(status=status)
    (worker,) = read_workers()
    assert (worker.state, worker.is_alive) == (state, state in ("active", "quiet", "draining"))
    assert worker.takes_tasks is (state == "active")


@pytest.mark.parametrize("status", ["running", "quiet", "stopping"])
def test_a_worker_that_was_not_seen_for_its_lease_is_lost_whoever_marks_it(status: str) -> None:
    make_worker(status=status, lease_seconds=30, seen_at=ago(MINUTE))
    (worker,) = read_workers()
    assert worker.state == "lost"
    assert worker.seen_seconds == pytest.approx(60, abs=40)


def test_a_worker_says_what_it_is() -> None:
    make_worker(queues={"mail": 2, "web": 1}, memory_bytes=5, trouble="ill", request="stop")
    (worker,) = read_workers()
    assert (worker.name, worker.host, worker.pid, worker.pool) == ("w1", "host-1", 7, "process")
    assert (worker.version, worker.queues, worker.slots) == ("1.2", ["mail", "web"], 4)
    assert (worker.memory_bytes, worker.trouble, worker.request) == (5, "ill", "stop")
    assert worker.serves("web")
    assert not worker.serves("sms")


def test_a_worker_is_busy_with_what_it_holds_up_to_its_slots() -> None:
    make_worker(concurrency=2)
    make_worker("w2")
    busy = []
    for _ in range(3):
        make_running("w1")
        busy.append([worker.busy for worker in read_workers()])
    assert busy == [[1, 0], [2, 0], [2, 0]]


def test_the_living_stand_first_then_the_newly_lost() -> None:
    make_worker("ended", status="stopped", seen_at=ago(MINUTE))
    make_worker("gone", status="lost", seen_at=ago(3 * MINUTE))
    make_worker("silent", seen_at=ago(2 * MINUTE))
    make_worker("z", status="stopping")
    make_worker("a", seen_at=ago(timedelta(seconds=10)))
    assert [worker.name for worker in read_workers()] == ["a", "z", "silent", "gone", "ended"]


def test_the_living_are_not_crowded_out() -> None:
    make_worker("alive", seen_at=ago(timedelta(seconds=10)))
    for number in range(3):
        make_worker(f"ended-{number}", status="stopped")
    assert [worker.name for worker in read_workers(limit=1)] == ["alive"]
