"""How soon a worker starts what is due. Bounds are generous: the machine may be busy."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from taskqueue import Fixed
from taskqueue.models import Lease, Task, Worker
from taskqueue.results import TaskResult
from tests.conftest import StartWorker
from tests.sample import tasks
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow

SOON = timedelta(seconds=1.2)
"""Far above what is measured on an idle machine, and below every poll of these tests."""


def wait_until_idle() -> None:
    """Until the worker has nothing to do, and has told enqueues to wake it."""
    tasks.noop.enqueue().wait(30)
    wait_until(lambda: Worker.objects.filter(is_idle=True).exists(), 30, what="an idle worker")


def lateness(result: TaskResult[object]) -> timedelta:
    """How long after its due time a task was claimed, by the database's clock."""
    result.wait(30)
    return Lease.objects.get(task_id=result.id).claimed_at - due_at(result)


def due_at(result: TaskResult[object]) -> datetime:
    return Task.objects.get(id=result.id).run_after


@pytest.mark.postgresql_only
def test_an_enqueue_wakes_an_idle_worker_long_before_its_poll(start_worker: StartWorker) -> None:
    start_worker("--poll-interval", "60")
    wait_until_idle()

    assert lateness(tasks.noop.enqueue()) < SOON


@pytest.mark.postgresql_only
def test_every_enqueue_wakes_it_also_after_it_was_busy(start_worker: StartWorker) -> None:
    start_worker("--poll-interval", "60")
    for _ in range(5):
        wait_until_idle()
        tasks.noop.enqueue_many([((), {})] * 300)
        last = tasks.noop.enqueue()
        assert lateness(last) < timedelta(seconds=20)


@pytest.mark.postgresql_only
def test_a_task_due_soon_starts_when_it_is_due_though_enqueued_to_an_idle_worker(
    start_worker: StartWorker,
) -> None:
    start_worker("--poll-interval", "30")
    wait_until_idle()

    result = tasks.noop.using(run_after=0.3).enqueue()

    assert timedelta(0) <= lateness(result) < SOON


def test_a_worker_sleeps_exactly_until_the_next_due_time(start_worker: StartWorker) -> None:
    start_worker("--poll-interval", "30")
    assert tasks.noop.enqueue().wait(30).status == "succeeded"  # Its child has started.
    results = [tasks.noop.using(run_after=seconds).enqueue() for seconds in (3, 3.3, 3.6)]

    for result in results:
        assert timedelta(0) <= lateness(result) < SOON


def test_a_task_due_soon_starts_when_it_is_due_at_the_usual_poll_interval(
    start_worker: StartWorker,
) -> None:
    start_worker()
    tasks.noop.enqueue().wait(30)

    for _ in range(5):
        result = tasks.noop.using(run_after=0.3).enqueue()
        assert timedelta(0) <= lateness(result) < SOON


def test_a_retry_starts_when_its_delay_is_over(start_worker: StartWorker) -> None:
    start_worker("--poll-interval", "30")
    result = tasks.fail_until.using(backoff=Fixed(0.3)).enqueue(3)

    result.wait(40)

    leases = list(Lease.objects.filter(task_id=result.id).order_by("attempt"))
    for before, after in pairwise(leases):
        pause = after.claimed_at - before.finished_at
        assert timedelta(seconds=0.3) <= pause < timedelta(seconds=0.3) + SOON


@pytest.mark.postgresql_only
def test_a_worker_that_cannot_listen_polls(start_worker: StartWorker) -> None:
    """As behind PgBouncer in transaction mode: the notification never arrives."""
    start_worker("--poll-interval", "0.3")
    wait_until_idle()
    Worker.objects.update(is_idle=False)

    assert lateness(tasks.noop.enqueue()) < SOON
    result = tasks.noop.using(run_after=0.2).enqueue()
    assert lateness(result) < timedelta(seconds=2) + SOON
