"""What ends a body, or a task that waits, when its time is over."""

from __future__ import annotations

import pytest

from taskqueue import Fixed
from tests.conftest import Drain, StartWorker
from tests.sample import tasks, worker_tasks
from tests.worker.reading import ended, leases

pytestmark = pytest.mark.slow

SHORT_GRACES = {"STOP_GRACE": 0.3, "KILL_GRACE": 0.5}
TIMEOUT = "taskqueue.exceptions.TaskTimeout"


def test_an_endless_loop_is_interrupted_at_its_timeout(drain: Drain, pool: str) -> None:
    looping, waiting = tasks.loop_for_ever.enqueue(), worker_tasks.wait_for_ever_async.enqueue()

    drain("--pool", pool)

    for result in (looping, waiting):
        assert (ended(result).status, leases(result)) == ("failed", ["failed"])
        assert result.errors[0].exception_class_path == TIMEOUT
        assert "0.3" in result.errors[0].message
    assert "loop_for_ever" in looping.errors[0].traceback


def test_a_timeout_is_a_failure_that_may_be_retried(start_worker: StartWorker, pool: str) -> None:
    result = worker_tasks.hang_once.enqueue()
    start_worker("--pool", pool)

    result.wait(30)

    assert result.return_value == 2
    assert leases(result) == ["failed", "succeeded"]


def test_a_body_that_swallows_its_timeout_is_killed(drain: Drain) -> None:
    result, after = tasks.loop_stubbornly.enqueue(), tasks.noop.enqueue()

    drain("--concurrency", "1", settings=SHORT_GRACES)

    assert (ended(result).status, leases(result)) == ("failed", ["failed"])
    assert result.errors[0].exception_class_path == TIMEOUT
    assert ended(after).status == "succeeded"


def test_a_body_that_swallows_its_timeout_loses_its_lease_in_the_thread_pool(
    start_worker: StartWorker,
) -> None:
    result = tasks.loop_stubbornly.enqueue()
    start_worker("--pool", "thread", "--concurrency", "2", settings=SHORT_GRACES)

    result.wait(30)
    after = tasks.noop.enqueue()
    after.wait(30)

    assert (result.status, leases(result)) == ("failed", ["failed"])
    assert result.errors[0].exception_class_path == TIMEOUT


def test_a_deadline_ends_a_running_body_and_is_not_retried(
    start_worker: StartWorker, pool: str
) -> None:
    start_worker("--pool", pool)
    tasks.noop.enqueue().wait(30)
    result = tasks.loop_for_ever.using(timeout=60, deadline=3, max_attempts=5).enqueue()

    result.wait(30)

    assert (result.status, leases(result)) == ("failed", ["failed"])
    assert result.errors[0].exception_class_path == "taskqueue.exceptions.DeadlineExceeded"


def test_what_waits_ends_at_its_deadline_or_expiry(start_worker: StartWorker) -> None:
    overdue = tasks.noop.using(run_after=60, deadline=0.5).enqueue()
    expired = tasks.noop.using(run_after=60, expires_after=0.5).enqueue()
    start_worker()

    assert overdue.wait(30).status == "failed"
    assert expired.wait(30).status == "cancelled"
    assert leases(overdue) == leases(expired) == []
    assert overdue.errors[0].exception_class_path == "taskqueue.exceptions.DeadlineExceeded"


def test_expires_after_does_not_end_what_has_started(start_worker: StartWorker) -> None:
    start_worker("--concurrency", "2")
    tasks.noop.enqueue().wait(30)
    slow = tasks.sleep.using(expires_after=3).enqueue(5)
    retried = tasks.fail_until.using(expires_after=3, backoff=Fixed(4)).enqueue(2)

    assert slow.wait(30).status == "succeeded"
    assert retried.wait(30).status == "succeeded"
    assert retried.attempts == 2
