"""Errors that do not count, and bodies that use more memory than they may."""

from __future__ import annotations

import sys

import pytest

from taskqueue.models import Lease, Task
from taskqueue.testing import run_due
from tests.conftest import StartWorker
from tests.sample.limit_tasks import leak, stay_small
from tests.sample.tasks import noop, wait_for_lock
from tests.sample.worker_tasks import grow_once


@pytest.mark.django_db
def test_an_error_that_does_not_count_puts_the_task_back_with_its_error() -> None:
    result = wait_for_lock.enqueue(2)

    runs = run_due()

    assert [run.status for run in runs] == ["scheduled", "scheduled", "succeeded"]
    task = Task.objects.get(id=result.id)
    assert (task.failures, task.attempt, task.return_value) == (0, 3, 3)
    first = Lease.objects.order_by("id")[0]
    assert (first.status, first.error_class) == ("returned", "builtins.BlockingIOError")
    assert "wait_for_lock" in first.traceback


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the memory of others is told by /proc")
@pytest.mark.parametrize("stubbornly", [False, True])
def test_a_body_that_uses_too_much_memory_fails_and_its_process_is_replaced(
    start_worker: StartWorker, *, stubbornly: bool
) -> None:
    start_worker("--concurrency", "1", settings={"KILL_GRACE": 0.5})

    result = grow_once.enqueue(stubbornly).wait(60)

    assert (result.status, result.attempts) == ("succeeded", 2)
    [error] = result.errors
    assert error.exception_class_path == "taskqueue.exceptions.MemoryExceeded"
    assert "more memory than its limit of 400 MB" in Lease.objects.order_by("id")[0].error_message
    assert noop.enqueue().wait(60).status == "succeeded"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the memory of others is told by /proc")
def test_memory_that_an_earlier_body_left_does_not_count_against_the_next(
    start_worker: StartWorker,
) -> None:
    leaking = leak.enqueue(400)
    small = stay_small.enqueue(0.6)
    start_worker("--concurrency", "1", settings={"CLAIM_AHEAD": 5})

    assert small.wait(60).status == "succeeded"
    assert small.attempts == 1
    assert small.return_value != leaking.wait(60).return_value
