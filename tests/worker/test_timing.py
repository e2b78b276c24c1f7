"""How soon a worker starts what is due. Bounds are generous: the machine may be busy."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

import pytest

from taskqueue import Fixed
from taskqueue.models import Lease, Task, Worker
from taskqueue.results import TaskResult
from taskqueue.worker.coordinator import BUSY_CLAIMS
from tests.conftest import StartWorker
from tests.sample import tasks
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow

POLL = 600
"""Seconds: what waits for this poll is late by more than `SOON`."""
SOON = timedelta(seconds=60)
"""Far above what is measured, also while the machine keeps a process waiting for long."""
AT_ONCE = timedelta(seconds=1.2)
"""The same for most of several tries, of which the machine may delay one or two; below the usual
poll."""
TRIES, ROUNDS = 7, 3
"""Of rounds one is enough: what delays most of a round each time is not the machine."""


def wait_until_idle() -> None:
    """Until the worker has nothing to do, and has told enqueues to wake it."""
    tasks.noop.enqueue().wait(60)
    wait_until(lambda: Worker.objects.filter(is_idle=True).exists(), what="an idle worker")


def assert_mostly_at_once(late: Callable[[], timedelta]) -> None:
    rounds: list[list[timedelta]] = []
    while not rounds or median(rounds[-1]) >= AT_ONCE:
        assert len(rounds) < ROUNDS, rounds
        rounds.append([late() for _ in range(TRIES)])
        assert timedelta(0) <= min(rounds[-1])


def lateness(result: TaskResult[object]) -> timedelta:
    """How long after its due time a task was claimed, by the database's clock."""
    result.wait(2 * SOON)
    return Lease.objects.get(task_id=result.id).claimed_at - due_at(result)


def due_at(result: TaskResult[object]) -> datetime:
    return Task.objects.get(id=result.id).run_after


@pytest.mark.direct_only
@pytest.mark.postgresql_only
def test_an_enqueue_wakes_an_idle_worker_long_before_its_poll(start_worker: StartWorker) -> None:
    start_worker("--poll-interval", str(POLL))
    wait_until_idle()

    assert lateness(tasks.noop.enqueue()) < SOON


@pytest.mark.direct_only
@pytest.mark.postgresql_only
def test_every_enqueue_wakes_it_also_after_it_was_busy(start_worker: StartWorker) -> None:
    start_worker("--poll-interval", str(POLL))
    for _ in range(5):
        wait_until_idle()
        tasks.noop.enqueue_many([((), {})] * 300)
        last = tasks.noop.enqueue()
        assert lateness(last) < SOON


@pytest.mark.direct_only
@pytest.mark.postgresql_only
def test_a_task_due_soon_starts_when_it_is_due_though_enqueued_to_an_idle_worker(
    start_worker: StartWorker,
) -> None:
    start_worker("--poll-interval", str(POLL))
    wait_until_idle()

    result = tasks.noop.using(run_after=0.3).enqueue()

    assert timedelta(0) <= lateness(result) < SOON


def test_a_worker_sleeps_until_the_next_due_time_not_until_its_next_poll(
    start_worker: StartWorker,
) -> None:
    start_worker("--poll-interval", str(POLL))
    assert tasks.noop.enqueue().wait(60).status == "succeeded"  # Its child has started.
    results = [tasks.noop.using(run_after=seconds).enqueue() for seconds in (3, 3.3, 3.6)]

    for result in results:
        assert timedelta(0) <= lateness(result) < SOON


def test_a_task_due_soon_starts_when_it_is_due_at_the_usual_poll_interval(
    start_worker: StartWorker,
) -> None:
    start_worker()
    tasks.noop.enqueue().wait(60)

    assert_mostly_at_once(lambda: lateness(tasks.noop.using(run_after=0.3).enqueue()))


def test_a_retry_starts_when_its_delay_is_over(start_worker: StartWorker) -> None:
    start_worker("--poll-interval", str(POLL))
    result = tasks.fail_until.using(backoff=Fixed(0.3)).enqueue(3)

    result.wait(100)

    leases = list(Lease.objects.filter(task_id=result.id).order_by("attempt"))
    for before, after in pairwise(leases):
        pause = after.claimed_at - before.finished_at
        assert timedelta(seconds=0.3) <= pause < timedelta(seconds=0.3) + SOON


@pytest.mark.direct_only
@pytest.mark.postgresql_only
def test_an_enqueue_wakes_a_worker_that_others_had_taken_for_lost(
    start_worker: StartWorker,
) -> None:
    start_worker("--poll-interval", str(POLL), settings={"PING_INTERVAL": 0.3})
    wait_until_idle()
    Worker.objects.update(status="lost", is_idle=False)

    again = Worker.objects.filter(status="running", is_idle=True)
    wait_until(again.exists, what="an idle worker")
    assert lateness(tasks.noop.enqueue()) < SOON


@pytest.mark.direct_only
@pytest.mark.postgresql_only
def test_an_enqueue_wakes_a_worker_that_was_busy_before(start_worker: StartWorker) -> None:
    start_worker(
        "--poll-interval", str(POLL), "--concurrency", "1", settings={"CLAIM_AHEAD": 0}
    )  # fmt: skip
    for result in tasks.noop.enqueue_many([((), {})] * (2 * BUSY_CLAIMS)):
        result.wait(2 * SOON)

    wait_until(Worker.objects.filter(is_idle=True).exists, what="an idle worker")
    assert lateness(tasks.noop.enqueue()) < SOON


@pytest.mark.direct_only
@pytest.mark.postgresql_only
def test_a_worker_that_cannot_listen_polls(start_worker: StartWorker) -> None:
    """As behind PgBouncer in transaction mode: the notification never arrives."""
    start_worker("--poll-interval", "0.3")
    wait_until_idle()

    def late() -> timedelta:
        Worker.objects.update(is_idle=False)
        return lateness(tasks.noop.enqueue())

    assert_mostly_at_once(late)
    result = tasks.noop.using(run_after=0.2).enqueue()
    assert lateness(result) < timedelta(seconds=2) + SOON
