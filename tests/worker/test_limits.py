"""Ends of bodies, and of tasks that wait, when their time is over."""

from __future__ import annotations

import pytest

from taskqueue import Fixed
from tests.conftest import Drain, StartWorker
from tests.sample import tasks, worker_tasks
from tests.worker.reading import ended, leases

pytestmark = pytest.mark.slow

LONGER_AND_LONGER = (0.3, 3, 30)
"""Seconds of a limit: the shortest will do, unless a process was off the processor meanwhile."""
LONG_GRACE = {"KILL_GRACE": 60}
"""A child that is slow to interrupt a body is not killed for it."""
SHORT_GRACES = {"STOP_GRACE": 0.3, "KILL_GRACE": 0.5}
TIMEOUT = "taskqueue.exceptions.TaskTimeout"


def test_an_endless_loop_is_interrupted_at_its_timeout(drain: Drain, pool: str) -> None:
    for timeout in LONGER_AND_LONGER:
        looping = tasks.loop_for_ever.using(timeout=timeout).enqueue()
        waiting = worker_tasks.wait_for_ever_async.using(timeout=timeout).enqueue()
        drain("--pool", pool, settings=LONG_GRACE)
        if "loop_for_ever" in ended(looping).errors[0].traceback:
            break

    for result in (looping, waiting):
        assert (ended(result).status, leases(result)) == ("failed", ["failed"])
        assert result.errors[0].exception_class_path == TIMEOUT
        assert f"timeout of {timeout:g} s" in result.errors[0].message
    assert "loop_for_ever" in looping.errors[0].traceback


def test_a_timeout_is_a_failure_that_may_be_retried(start_worker: StartWorker, pool: str) -> None:
    # Any attempt may run out of time on a busy machine; the first one does on every machine.
    result = worker_tasks.hang_once.using(max_attempts=50).enqueue()
    start_worker("--pool", pool)

    result.wait(60)

    attempts = result.return_value
    assert attempts >= 2
    assert leases(result) == ["failed"] * (attempts - 1) + ["succeeded"]


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

    result.wait(60)
    after = tasks.noop.enqueue()
    after.wait(60)

    assert (result.status, leases(result)) == ("failed", ["failed"])
    assert result.errors[0].exception_class_path == TIMEOUT


def test_progress_lets_a_time_limit_begin_anew(drain: Drain, pool: str) -> None:
    for timeout in LONGER_AND_LONGER:
        limited = {"timeout": timeout, "timeout_from": "progress"}
        reporting = worker_tasks.report_for.using(**limited)
        result = reporting.enqueue(2 * timeout, timeout / 20)
        drain("--pool", pool, settings=LONG_GRACE)
        if ended(result).status == "succeeded":
            break

    assert result.status == "succeeded", result.errors


def test_a_body_that_reports_no_more_progress_is_interrupted(drain: Drain, pool: str) -> None:
    limited = {"timeout": 0.5, "timeout_from": "progress"}
    result = worker_tasks.fall_silent.using(**limited).enqueue()
    drain("--pool", pool, settings=LONG_GRACE)

    assert (ended(result).status, leases(result)) == ("failed", ["failed"])
    [error] = result.errors
    assert error.exception_class_path == TIMEOUT
    assert error.message == "The body reported no progress for its timeout of 0.5 s."


def test_a_definition_may_have_graces_of_its_own(drain: Drain) -> None:
    result = tasks.loop_stubbornly.using(kill_grace=0.2).enqueue()
    drain("--concurrency", "1", settings={"KILL_GRACE": 3600})

    assert (ended(result).status, leases(result)) == ("failed", ["failed"])
    assert "did not stop when it was interrupted" in result.errors[0].message


def test_a_deadline_ends_a_running_body_and_is_not_retried(
    start_worker: StartWorker, pool: str
) -> None:
    start_worker("--pool", pool)
    tasks.noop.enqueue().wait(60)
    for deadline in (3, 12, 48):
        endless = tasks.loop_for_ever.using(timeout=600, deadline=deadline, max_attempts=5)
        result = endless.enqueue()
        result.wait(120)
        if leases(result):  # Else it had not been claimed by then.
            break

    assert (result.status, leases(result)) == ("failed", ["failed"])
    assert result.errors[0].exception_class_path == "taskqueue.exceptions.DeadlineExceeded"


def test_a_waiting_task_ends_at_its_deadline_or_expiry(start_worker: StartWorker) -> None:
    overdue = tasks.noop.using(run_after=60, deadline=0.5).enqueue()
    expired = tasks.noop.using(run_after=60, expires_after=0.5).enqueue()
    start_worker()

    assert overdue.wait(60).status == "failed"
    assert expired.wait(60).status == "cancelled"
    assert leases(overdue) == leases(expired) == []
    assert overdue.errors[0].exception_class_path == "taskqueue.exceptions.DeadlineExceeded"


def test_expires_after_does_not_end_what_has_started(start_worker: StartWorker) -> None:
    start_worker("--concurrency", "2")
    tasks.noop.enqueue().wait(60)
    for seconds in (3, 12, 48):
        slow = tasks.sleep.using(expires_after=seconds).enqueue(seconds + 2)
        failing = tasks.fail_until.using(expires_after=seconds, backoff=Fixed(seconds + 1))
        retried = failing.enqueue(2)
        slow.wait(120)
        retried.wait(120)
        if leases(slow) and leases(retried):  # Else one had not started by then.
            break

    assert slow.status == "succeeded"
    assert retried.status == "succeeded"
    assert retried.attempts == 2
