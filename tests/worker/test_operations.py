"""Real workers serve operations: whatever becomes of one of them, each task is done once."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from taskqueue.control import TaskFilter, cancel_operation, start_operation
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Audit, Operation, Queue, Task, Worker
from taskqueue.models.operation import OperationStatus
from tests.conftest import Drain, StartWorker
from tests.engine.operation_steps import audited
from tests.sample.tasks import noop
from tests.worker_process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

MORE_AND_MORE = (5000, 20_000, 80_000)
"""Tasks of an operation that is to be met midway: more, where it was over by the time it was."""
FAILED = TaskFilter(statuses=["failed"])
QUICK = {"LEASE_DURATION": 3, "PING_INTERVAL": 0.2}
PAUSED = "paused"
"""A queue of which nothing is claimed, so that what is retried stays ready."""


def fail(count: int) -> None:
    Queue.objects.create(name=PAUSED, paused_at=timezone.now())
    now = timezone.now()
    Task.objects.bulk_create(
        [
            Task(
                name=noop.name, queue_name=PAUSED, status="failed", finished_at=now, attempt=1,
                error_class="builtins.ValueError", crash_delay=timedelta(seconds=1),
            )
            for _ in range(count)
        ],
        batch_size=500,
    )  # fmt: skip


def start_afresh(count: int) -> None:
    """So many failed tasks, and nothing else."""
    for each in (Task, Audit, Queue):
        each.objects.all().delete()
    fail(count)


def await_status(operation: Operation, *statuses: str, timeout: float = 60) -> Operation:
    def found() -> Operation | None:
        return Operation.objects.filter(id=operation.id, status__in=statuses).first()

    return wait_until(found, timeout, what=f"{statuses} of {operation}")


def await_done(operation: Operation, least: int) -> None:
    def is_far() -> bool:
        return Operation.objects.filter(id=operation.id, done__gte=least).exists()

    wait_until(is_far, 60, what=f"{least} of {operation}")


def check_each_once(operation: Operation, count: int) -> None:
    assert (operation.matched, operation.done) == (count, count)
    lines = audited("retry")
    assert (len(lines), set(lines.values())) == (count, {1})
    assert Task.objects.filter(status="ready").count() == count


def test_a_worker_that_is_killed_in_the_midst_leaves_the_rest_to_another(
    start_worker: StartWorker,
) -> None:
    for many in MORE_AND_MORE:
        start_afresh(many)
        operation = start_operation("retry", FAILED, query="status:failed", by="ada")
        first = start_worker("--queues", "other", settings=QUICK)
        await_done(operation, 1000)
        first.kill()
        first.wait()
        between = Operation.objects.get(id=operation.id)
        if between.done < many:
            break
    assert between.done < many
    assert len(audited("retry")) == between.done
    start_worker("--queues", "elsewhere", settings=QUICK)
    check_each_once(await_status(operation, "finished", timeout=300), many)


def test_two_workers_share_operations_and_do_each_task_once(start_worker: StartWorker) -> None:
    fail(2000)
    first = start_operation("retry", FAILED, query="status:failed")
    second = start_operation(
        "update", TaskFilter(queue_name=PAUSED), arguments={"changes": {"priority": 7}}
    )
    start_worker(settings=QUICK)
    start_worker(settings=QUICK)
    assert await_status(second, "finished").done <= 2000
    check_each_once(await_status(first, "finished"), 2000)


def test_without_a_worker_it_waits_and_one_that_comes_begins_at_once(
    start_worker: StartWorker,
) -> None:
    fail(300)
    operation = start_operation("retry", FAILED)
    assert Operation.objects.get(id=operation.id).status == OperationStatus.WAITING
    start_worker(settings=QUICK)
    check_each_once(await_status(operation, "finished"), 300)


@pytest.mark.direct_only
def test_an_idle_worker_begins_within_a_poll(start_worker: StartWorker) -> None:
    fail(10)
    poll = "120" if connection.vendor == "postgresql" else "0.2"
    start_worker("--poll-interval", poll, settings={**QUICK, "TAKEOVER_INTERVAL": 120})
    if connection.vendor == "postgresql":
        # Before it has said so, what is asked for waits for its next look.
        wait_until(Worker.objects.filter(is_idle=True).exists, what="an idle worker")
    other = start_operation("retry", TaskFilter(name="shop.tasks.gone"))
    await_status(other, "finished")
    operation = start_operation("retry", FAILED)
    await_status(operation, "finished")


def test_an_operation_cancelled_midway_ends_there(start_worker: StartWorker) -> None:
    start_worker(settings=QUICK)
    for many in MORE_AND_MORE:
        start_afresh(many)
        operation = start_operation("retry", FAILED)
        await_done(operation, 200)
        with suppress(TransitionRefused):
            ended = cancel_operation(operation.id, by="ada")
            break
    other = start_operation("retry", TaskFilter(name="shop.tasks.gone"))
    await_status(other, "finished")
    after: Any = Operation.objects.get(id=operation.id)
    assert (after.status, after.done) == ("cancelled", ended.done)
    assert len(audited("retry")) == after.done < many


def test_a_worker_that_drains_does_what_is_asked_first(drain: Drain) -> None:
    noop.enqueue()
    drain()
    operation = start_operation("retry", TaskFilter(statuses=["succeeded"]))
    drain()
    assert Operation.objects.get(id=operation.id).status == "finished"
    assert Task.objects.get().attempt == 2
