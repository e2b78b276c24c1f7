"""A project whose code changes, or cannot be imported."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import transaction

from taskqueue.models import Lease, Task, Worker
from tests.conftest import StartWorker
from tests.sample import tasks
from tests.worker.health_port import BUSY_OTHERWISE, FLAGS, WELL, health_of
from tests.worker.shop import Shop
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def enqueue_price() -> Task:
    """A task of the shop, which this process does not know."""
    with transaction.atomic():
        result = tasks.noop.enqueue()
        Task.objects.filter(id=result.id).update(name="shop.tasks.price")
    return Task.objects.get(id=result.id)


def price_of(task: Task) -> int:
    def price() -> Task | None:
        return Task.objects.filter(id=task.id, status="succeeded").first()

    return int(wait_until(price, 60, what="a price").return_value)


def test_reload_replaces_the_children_when_a_file_changes(
    start_worker: StartWorker, shop: Shop, pool: str
) -> None:
    worker = start_worker("--reload", "--pool", pool, env=shop.environment)
    assert price_of(enqueue_price()) == 1

    shop.set_price(2)

    wait_until(lambda: price_of(enqueue_price()) == 2)
    assert worker.returncode is None
    assert not Lease.objects.exclude(status="succeeded").exists()


def test_children_that_cannot_start_spend_no_attempt_and_say_why(
    start_worker: StartWorker, shop: Shop, pool: str
) -> None:
    shop.break_it()
    worker = start_worker(
        "--concurrency", "2", "--pool", pool, env=shop.environment, settings={"PING_INTERVAL": 0.2}
    )
    task = enqueue_price()

    row = wait_until(lambda: Worker.objects.exclude(trouble="").first(), what="trouble")
    assert "a_module_that_nobody_has" in row.trouble
    task.refresh_from_db()
    assert (task.status, task.attempt) == ("ready", 0)

    shop.set_price(3)

    assert price_of(task) == 3
    task.refresh_from_db()
    assert (task.attempt, task.crashes, task.failures) == (1, 0, 0)
    wait_until(lambda: Worker.objects.filter(trouble="").exists(), what="no trouble")
    assert worker.returncode is None


def test_children_that_no_longer_start_return_what_they_were_to_run(
    start_worker: StartWorker, shop: Shop
) -> None:
    """The code breaks under a running worker whose child dies."""
    worker = start_worker(
        "--concurrency", "1", *FLAGS, env=shop.environment, settings={"PING_INTERVAL": 0.2}
    )
    assert price_of(enqueue_price()) == 1
    shop.break_it()

    crashed = tasks.exit_hard.using(crash_delay=3600).enqueue()
    wait_until(lambda: Worker.objects.exclude(trouble="").first(), what="trouble")
    assert health_of(worker) == BUSY_OTHERWISE
    task = enqueue_price()
    shop.set_price(4)

    assert price_of(task) == 4
    assert health_of(worker) == WELL
    assert Lease.objects.filter(task_id=task.id).count() == 1
    crashed.refresh()
    assert crashed.status == "retrying"
