"""Every kind of body ends as the contract's table of outcomes says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from taskqueue.models import Lease, Task
from taskqueue.results import TaskResult
from tests.conftest import Drain, StartWorker
from tests.sample import tasks, worker_tasks
from tests.sample.models import Effect
from tests.worker.reading import ended, leases, row
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow

LOST = "taskqueue.exceptions.AttemptLost"


def test_the_return_value_of_a_body_is_the_result(drain: Drain, pool: str) -> None:
    sums = tasks.add.enqueue(2, b=3)
    nothing = tasks.noop.enqueue()
    echoed = tasks.echo.enqueue(1, "två", key=[None, 1.5, {"a": True}])
    on_loop = tasks.current_async.enqueue()
    with_orm = tasks.query_async.enqueue()

    drain("--pool", pool)

    assert ended(sums).return_value == 5
    assert ended(nothing).return_value is None
    assert ended(echoed).return_value == [[1, "två"], {"key": [None, 1.5, {"a": True}]}]
    assert ended(on_loop).return_value == str(on_loop.id)
    assert ended(with_orm).return_value == 1
    assert leases(sums) == ["succeeded"]
    assert sums.attempts == 1
    assert sums.errors == []


def test_an_error_is_stored_with_class_message_and_traceback(drain: Drain, pool: str) -> None:
    result = tasks.fail.enqueue("for a reason")

    drain("--pool", pool, "--name", "the-worker")

    assert ended(result).status == "failed"
    assert leases(result) == ["failed"]
    (error,) = result.errors
    assert error.exception_class_path == "builtins.ValueError"
    assert error.message == "for a reason"
    assert "raise ValueError(message)" in error.traceback
    assert (error.attempt, error.worker_name) == (1, "the-worker")
    with pytest.raises(ValueError, match="failed"):
        _ = result.return_value


def test_a_failure_is_retried_until_it_succeeds_and_its_errors_stay(
    start_worker: StartWorker, pool: str
) -> None:
    result = tasks.fail_until.enqueue(3)
    start_worker("--pool", pool)

    result.wait(60)

    assert result.return_value == 3
    assert leases(result) == ["failed", "failed", "succeeded"]
    assert [error.message for error in result.errors] == ["attempt 1", "attempt 2"]
    assert (row(result).failures, row(result).crashes) == (2, 0)


def test_attempts_end_with_max_attempts(start_worker: StartWorker) -> None:
    result = tasks.fail_until.using(max_attempts=2).enqueue(10)
    start_worker()

    result.wait(60)

    assert result.status == "failed"
    assert leases(result) == ["failed", "failed"]


def test_the_class_of_an_exception_decides_about_retries(start_worker: StartWorker) -> None:
    retried = tasks.fail_with.enqueue("ValueError")
    not_listed = tasks.fail_with.enqueue("KeyError")
    given_up = tasks.fail_with.enqueue("UnicodeError")
    start_worker()

    for result in (retried, not_listed, given_up):
        result.wait(60)
        assert result.status == "failed"
    assert leases(retried) == ["failed"] * 5
    assert leases(not_listed) == ["failed"]
    assert leases(given_up) == ["failed"]


def test_a_callable_backoff_is_asked(start_worker: StartWorker) -> None:
    result = tasks.fail_with_callable_backoff.enqueue(1)
    start_worker()

    result.wait(60)

    assert leases(result) == ["failed", "failed"]
    first, second = Lease.objects.filter(task_id=result.id).order_by("attempt")
    assert second.claimed_at - first.finished_at >= timedelta(milliseconds=10)


@pytest.mark.parametrize("times", [1, 3])
def test_retry_later_counts_a_failure_whatever_max_attempts_says(
    start_worker: StartWorker, times: int
) -> None:
    result = tasks.retry_later.enqueue(times)
    start_worker()

    result.wait(60)

    assert result.return_value == times + 1
    assert leases(result) == ["failed"] * times + ["succeeded"]
    assert row(result).failures == times


def test_snooze_counts_nothing(start_worker: StartWorker) -> None:
    result = tasks.snooze.enqueue(2)
    start_worker()

    result.wait(60)

    assert result.return_value == 3
    assert leases(result) == ["returned", "returned", "succeeded"]
    assert row(result).failures == 0


def test_a_body_decides_to_give_up_or_to_cancel(drain: Drain, pool: str) -> None:
    given_up, cancelled = tasks.give_up.enqueue(), tasks.cancel_itself.enqueue()

    drain("--pool", pool)

    assert (ended(given_up).status, leases(given_up)) == ("failed", ["failed"])
    assert given_up.errors[0].message == "no use"
    assert (ended(cancelled).status, leases(cancelled)) == ("cancelled", ["stopped"])
    assert row(cancelled).error_message == "not needed"


def test_a_segfault_is_a_crash_and_the_third_fails_the_task(start_worker: StartWorker) -> None:
    result = tasks.segfault.using(crash_delay=0, max_attempts=10).enqueue()
    start_worker("--concurrency", "2")

    result.wait(60)

    assert result.status == "failed"
    assert leases(result) == ["lost"] * 3
    assert (row(result).crashes, row(result).failures) == (3, 0)
    assert {error.exception_class_path for error in result.errors} == {LOST}
    assert "SIGSEGV" in result.errors[0].message


@pytest.mark.parametrize("code", [0, 3])
def test_an_exit_without_an_outcome_is_a_crash_whatever_its_code(
    start_worker: StartWorker, pool: str, code: int
) -> None:
    result = tasks.exit_hard.using(crash_delay=0, max_crashes=2).enqueue(code)
    start_worker("--pool", pool)

    result.wait(60)

    assert result.status == "failed"
    assert leases(result) == ["lost"] * 2
    assert f"exit code {code}" in result.errors[0].message


def test_a_crash_is_followed_by_another_attempt_after_crash_delay(
    start_worker: StartWorker,
) -> None:
    result = worker_tasks.crash_until.using(crash_delay=1).enqueue(2)
    start_worker()

    result.wait(60)

    assert result.return_value == 2
    assert (row(result).crashes, row(result).failures) == (1, 0)
    first, second = Lease.objects.filter(task_id=result.id).order_by("attempt")
    assert second.claimed_at - first.finished_at >= timedelta(seconds=0.9)


@pytest.mark.parametrize("class_name", ["SystemExit", "KeyboardInterrupt", "GeneratorExit"])
def test_a_system_exit_in_a_body_is_an_ordinary_failure(
    drain: Drain, pool: str, class_name: str
) -> None:
    raised = tasks.raise_exit.enqueue(class_name)
    raised_on_loop = worker_tasks.raise_exit_async.enqueue(class_name)
    after, after_on_loop = tasks.noop.enqueue(), tasks.current_async.enqueue()

    drain("--pool", pool, "--concurrency", "1")

    for result in (raised, raised_on_loop):
        assert (ended(result).status, leases(result)) == ("failed", ["failed"])
        assert result.errors[0].exception_class_path == f"builtins.{class_name}"
        assert result.errors[0].message == "ended"
    assert ended(after).status == "succeeded"
    assert ended(after_on_loop).status == "succeeded"


def test_an_unknown_name_is_parked_and_fails_when_it_is_too_old(start_worker: StartWorker) -> None:
    result = tasks.noop.enqueue()
    Task.objects.filter(id=result.id).update(name="shop.tasks.unknown")
    start_worker(settings={"PARK_DELAY": 0.1, "PARK_LIMIT": 2})

    result.wait(60)

    assert result.status == "failed"
    assert "shop.tasks.unknown" in row(result).error_message
    assert set(leases(result)) == {"returned"}
    assert (row(result).failures, row(result).crashes) == (0, 0)
    assert_ended_after_the_claim(result)


def assert_ended_after_the_claim(result: TaskResult[Any]) -> None:
    """Its attempts, none of which has begun, lie between its enqueue and its end."""
    assert result.finished_at is not None
    for attempt in result.history:
        assert attempt.started_at is None
        assert attempt.finished_at is not None
        assert result.enqueued_at <= attempt.claimed_at <= attempt.finished_at
        assert attempt.finished_at <= result.finished_at


def test_an_unknown_name_is_logged_once_with_the_remedy(start_worker: StartWorker) -> None:
    names = ["shop.views.one", "shop.views.one", "shop.views.two"]
    results = [tasks.noop.enqueue() for _ in names]
    for result, name in zip(results, names, strict=True):
        Task.objects.filter(id=result.id).update(name=name)
    worker = start_worker("--pool", "thread", settings={"PARK_DELAY": 0.1, "PARK_LIMIT": 2})

    for result in results:
        result.wait(60)
        assert_ended_after_the_claim(result)

    told = [line for line in worker.log().splitlines() if "Task parked" in line]
    assert sorted(line.partition("task=")[2].split()[0] for line in told) == names[1:]
    for line in told:
        assert "WARNING" in line
        assert "the module `tasks` of an installed app" in line


def test_an_unknown_name_waits_for_a_worker_that_knows_it(start_worker: StartWorker) -> None:
    result = tasks.noop.enqueue()
    Task.objects.filter(id=result.id).update(name="shop.tasks.unknown")
    start_worker(settings={"PARK_DELAY": 0.3})

    wait_until(lambda: row(result).status == "scheduled")
    Task.objects.filter(id=result.id).update(name="tests.sample.tasks.noop")

    assert result.wait(60).status == "succeeded"


def test_arguments_that_no_longer_bind_fail_at_once(drain: Drain) -> None:
    result = tasks.add.using(max_attempts=5).enqueue(1)
    Task.objects.filter(id=result.id).update(kwargs={"gone": 1})

    drain()

    assert (ended(result).status, leases(result)) == ("failed", ["failed"])
    assert "gone" in result.errors[0].message


def test_an_atomic_body_commits_once_with_its_success(start_worker: StartWorker, pool: str) -> None:
    result = tasks.mark_atomically.enqueue(fail_times=2)
    start_worker("--pool", pool)

    result.wait(60)

    assert result.return_value == "committed"
    assert leases(result) == ["failed", "failed", "succeeded"]
    assert [effect.attempt for effect in Effect.objects.filter(task_id=result.id)] == [3]


def test_an_atomic_body_that_fails_or_crashes_leaves_nothing(start_worker: StartWorker) -> None:
    failed = tasks.mark_atomically.enqueue(fail_times=5)
    crashed = tasks.die_atomically.using(crash_delay=0).enqueue("gone")
    start_worker()

    assert failed.wait(60).status == "failed"
    assert crashed.wait(60).status == "failed"
    assert leases(crashed) == ["lost"] * 3
    assert not Effect.objects.exists()


def test_hooks_behind_an_atomic_commit_are_not_cut_off(
    start_worker: StartWorker, tmp_path: Any, pool: str
) -> None:
    path = tmp_path / "acted"
    result = worker_tasks.act_after_commit.enqueue(str(path), 2)
    start_worker("--pool", pool, settings={"PING_INTERVAL": 0.2})

    assert result.wait(60).return_value == "committed"
    wait_until(path.exists, what="the hook behind the commit")
