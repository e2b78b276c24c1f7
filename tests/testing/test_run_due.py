"""`run_due` runs what is due, as a worker would, in the test's own transaction."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test import override_settings

from taskqueue import Cancel, Fixed, GiveUp, RetryLater, Snooze, UnknownTask, control, current
from taskqueue.models import Lease, Task, TaskLog, Worker
from taskqueue.testing import Crash, StillDue, arun_due, run_due, run_next, travelling
from tests.sample.models import Effect
from tests.sample.tasks import (
    add,
    echo,
    fail,
    fail_until,
    give_up,
    mark,
    mark_atomically,
    noop,
    query_async,
    retry_later,
    return_set,
    return_size,
    snooze,
    unique,
)
from tests.testing.bodies import perform, perform_async, perform_atomically, play, tell

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def raising(error: BaseException) -> Any:
    def raise_it() -> None:
        raise error

    return raise_it


def test_due_tasks_run_in_the_order_of_a_worker_and_are_recorded() -> None:
    low = add.using(priority=-5).enqueue(1)
    first, second = add.enqueue_many([((2,), {}), ((3, 4), {})])
    high = add.using(priority=5).enqueue(9, b=1)

    runs = run_due()

    assert [run.result for run in runs] == [high, first, second, low]
    assert [run.result.return_value for run in runs] == [10, 3, 7, 2]
    assert {(run.name, run.outcome, run.status, run.attempt, run.error) for run in runs} == {
        (add.name, "succeeded", "succeeded", 1, None)
    }
    low.refresh()
    assert low.return_value == 2
    assert low.worker_names == ["testing"]
    assert run_due() == []


def test_a_body_has_its_context_and_its_lines_and_progress_are_kept() -> None:
    result = tell.using(metadata={"from": "a test"}).enqueue()
    [run] = run_due()
    assert run.result.return_value == [1, "testing", {"from": "a test"}, str(result.id)]
    assert run.result.progress == (100.0, "a quarter")
    assert [line.message for line in TaskLog.objects.filter(task_id=result.id)] == ["told"]


def test_one_at_a_time() -> None:
    noop.enqueue()
    add.enqueue(1)
    assert run_next().name == noop.name  # type: ignore[union-attr]
    assert run_next().name == add.name  # type: ignore[union-attr]
    assert run_next() is None


def test_only_some_tasks_and_one_queue() -> None:
    noop.enqueue()
    add.enqueue(1)
    echo.using(queue_name="mail").enqueue()
    assert [run.name for run in run_due(add)] == [add.name]
    assert [run.name for run in run_due(queue_name="mail")] == [echo.name]
    assert run_due(echo.name, queue_name="mail") == []
    with pytest.raises(UnknownTask, match=r"Did you mean 'tests\.sample"):
        run_due("tests.sample.tasks.nop")
    assert [run.name for run in run_due()] == [noop.name]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"errors": "ignore"}, "errors must be 'record' or 'raise'"),
        ({"backoff": False}, "backoff must be 'keep' or 'skip'"),
        ({"limit": 0}, "limit must be a whole number"),
        ({"workers": "w1"}, "workers must be a list"),
        ({"queue_name": "no queue!"}, "queue_name must be 1 to 100"),
    ],
)
def test_invalid_options_are_reported_by_run_due(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        run_due(**options)


def test_invalid_arguments_are_reported_by_run_due() -> None:
    with pytest.raises(TypeError, match=r"There is no option 'bogus'\. Choose from queue_name"):
        run_due(bogus=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="There is no option 'names'"):
        run_next(names=())  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Pass a task or the name of one, not \[<"):
        run_due([echo])


def test_an_error_ends_in_the_result_and_a_retry_waits_for_its_time() -> None:
    play["x"] = raising(ValueError("not yet"))
    result = perform.enqueue("x")
    [run] = run_due()
    assert (run.outcome, run.status) == ("failed", "retrying")
    assert isinstance(run.error, ValueError)
    assert run_due() == []
    with travelling(60):
        assert [run.attempt for run in run_due()] == [2]
    with travelling(HOUR):
        assert [run.status for run in run_due()] == ["failed"]
    result.refresh()
    assert [error.message for error in result.errors] == ["not yet"] * 3
    assert "raise error" in result.errors[0].traceback


def test_without_the_backoff_retries_go_to_their_end() -> None:
    play["x"] = raising(ValueError("never"))
    perform.enqueue("x")
    runs = run_due(backoff="skip")
    assert [(run.attempt, run.status) for run in runs] == [
        (1, "retrying"),
        (2, "retrying"),
        (3, "failed"),
    ]
    fail_until.enqueue(3)
    assert [run.status for run in run_due()] == ["retrying", "retrying", "succeeded"]


def test_an_error_is_raised_where_the_test_wants_it_once_it_is_recorded() -> None:
    result = fail.enqueue("for the test")
    with pytest.raises(ValueError, match="for the test"):
        run_due(errors="raise")
    result.refresh()
    assert result.status == "failed"
    retry_later.enqueue(1)
    assert [run.outcome for run in run_due(errors="raise")] == ["retry_later", "succeeded"]


def test_an_exception_of_pytest_reaches_the_test() -> None:
    play["x"] = lambda: pytest.fail("seen by the test")
    result = perform.enqueue("x")
    with pytest.raises(pytest.fail.Exception, match="seen by the test"):
        run_due()
    result.refresh()
    assert result.status == "retrying"


@pytest.mark.parametrize(
    ("error", "outcome", "status"),
    [
        (RetryLater(HOUR), "retry_later", "retrying"),
        (Snooze(HOUR), "snoozed", "scheduled"),
        (GiveUp("no use"), "failed", "failed"),
        (Cancel("not needed"), "cancelled", "cancelled"),
        (SystemExit(1), "failed", "retrying"),
        (Crash(), "lost", "retrying"),
    ],
)
def test_exceptions_of_a_body_decide_the_status_of_its_task(
    error: BaseException, outcome: str, status: str
) -> None:
    play["x"] = raising(error)
    perform.using(crash_delay=HOUR).enqueue("x")
    assert [(run.outcome, run.status) for run in run_due()] == [(outcome, status)]


def test_a_body_that_crashes_each_time_fails_in_the_end() -> None:
    play["x"] = raising(Crash())
    result = perform.using(max_crashes=2).enqueue("x")
    assert [run.status for run in run_due(backoff="skip")] == ["retrying", "failed"]
    result.refresh()
    assert result.errors[0].exception_class_path == "taskqueue.exceptions.AttemptLost"
    assert Task.objects.get().crashes == 2


def test_results_that_cannot_be_kept_fail() -> None:
    return_set.enqueue()
    return_size.enqueue(2_000_000)
    assert [run.status for run in run_due()] == ["failed", "failed"]


def test_an_endless_loop_is_reported() -> None:
    retry_later.enqueue(1000)
    with pytest.raises(StillDue, match=r"after 20 attempts.*retry_later \(retry_later\)"):
        run_due(limit=20)
    snooze.enqueue(1)
    assert len(run_due(snooze, limit=2)) == 2


def test_tasks_that_bodies_enqueue_are_run_too() -> None:
    play["x"] = lambda: str(add.enqueue(1).id)
    perform.enqueue("x")
    assert [run.name for run in run_due()] == [perform.name, add.name]


def test_on_commit_callbacks_of_a_body_run_when_it_ends() -> None:
    def body() -> None:
        transaction.on_commit(lambda: mark.enqueue("on commit"))

    play["x"] = body
    perform.enqueue("x")
    perform_atomically.enqueue("x")
    assert [run.name for run in run_due()] == [
        perform.name,
        perform_atomically.name,
        mark.name,
        mark.name,
    ]


def test_a_body_that_fails_keeps_what_it_wrote_as_a_worker_commits_it() -> None:
    def body() -> None:
        Effect.objects.create(task_id="0" * 32, attempt=1)
        raise ValueError("after the effect")

    play["x"] = body
    perform.enqueue("x")
    run_due()
    assert Effect.objects.count() == 1


def test_an_atomic_body_that_fails_keeps_nothing() -> None:
    mark_atomically.enqueue(1)
    runs = run_due()
    assert [run.status for run in runs] == ["retrying", "succeeded"]
    assert [effect.attempt for effect in Effect.objects.all()] == [2]


def test_an_atomic_body_runs_within_a_transaction_of_the_test() -> None:
    with transaction.atomic():
        mark_atomically.enqueue()
        assert [run.status for run in run_due()] == ["succeeded"]
    assert Effect.objects.count() == 1


@pytest.mark.postgresql_only
def test_the_session_of_the_test_is_left_as_it_was() -> None:
    read = "SELECT current_setting('idle_in_transaction_session_timeout')"
    with connection.cursor() as cursor:
        cursor.execute(read)
        before = cursor.fetchone()
        mark_atomically.enqueue()
        run_due()
        cursor.execute(read)
        assert cursor.fetchone() == before


def test_an_error_of_the_database_in_a_body_leaves_the_transaction_of_the_test_usable() -> None:
    def break_a_rule() -> None:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO sample_effect (note) VALUES (NULL)")

    def swallow() -> None:
        with pytest.raises(IntegrityError):
            break_a_rule()

    play.update(breaks=break_a_rule, swallows=swallow)
    perform.enqueue("breaks")
    perform_atomically.enqueue("breaks")
    runs = run_due(errors="record")
    assert [type(run.error) for run in runs] == [IntegrityError, IntegrityError]
    perform.enqueue("swallows")
    [run] = run_due()
    # PostgreSQL has given the transaction up, which in a worker would be over by then.
    assert run.status == ("retrying" if connection.vendor == "postgresql" else "succeeded")
    assert Effect.objects.count() == 0


def test_an_async_body_uses_the_transaction_of_the_test() -> None:
    Effect.objects.create(task_id="0" * 32, attempt=1)
    query_async.enqueue()
    assert [run.result.return_value for run in run_due()] == [2]


async def _no_answer() -> None:
    raise ValueError("on the loop")


def test_an_async_body_fails_as_any() -> None:
    play["x"] = _no_answer
    perform_async.enqueue("x")
    [run] = run_due()
    assert (run.status, str(run.error)) == ("failed", "on the loop")


def test_a_body_sees_that_it_is_asked_to_stop() -> None:
    def body() -> None:
        current().task_result.cancel("enough")
        assert current().stop_requested
        current().check()

    play["x"] = body
    perform.enqueue("x")
    [run] = run_due()
    assert (run.outcome, run.status) == ("stopped", "cancelled")
    assert Lease.objects.get().stop_seen_at is not None


@pytest.mark.parametrize(("looks", "status"), [(True, "cancelled"), (False, "succeeded")])
def test_a_body_that_ends_though_it_was_asked_to_stop(looks: bool, status: str) -> None:
    def body() -> bool:
        current().task_result.cancel("enough")
        return looks and current().stop_requested

    play["x"] = body
    perform.enqueue("x")
    [run] = run_due()
    assert (run.status, Task.objects.get().status) == (status, status)
    assert run.outcome == Lease.objects.get().status == ("stopped" if looks else "succeeded")


def test_a_timeout_is_looked_at_when_the_body_ends() -> None:
    def body() -> None:
        journey = travelling(31)
        journey.start()
        journeys.append(journey)

    journeys: list[travelling] = []
    play["x"] = body
    perform.using(timeout=30).enqueue("x")
    try:
        [run] = run_due()
    finally:
        journeys[0].stop()
    assert (run.outcome, run.status) == ("failed", "retrying")
    assert run.result.errors[0].exception_class_path == "taskqueue.exceptions.TaskTimeout"


def test_unique_keys_hold_until_the_end() -> None:
    first, second = unique.enqueue("a"), unique.enqueue("a")
    assert second == first
    assert len(run_due()) == 1
    assert unique.enqueue("a").created


def test_a_task_of_several_workers_is_run_by_as_many() -> None:
    several = add.using(workers=3).enqueue(1)
    named = noop.using(worker_names=["alpha"]).enqueue()
    runs = run_due()
    assert sorted((run.name, run.worker_name) for run in runs) == [
        (add.name, "testing"),
        (add.name, "testing-2"),
        (add.name, "testing-3"),
        (noop.name, "alpha"),
    ]
    several.refresh()
    named.refresh()
    assert several.return_value == [2, 2, 2]
    assert named.status == "succeeded"


def test_a_broadcast_is_run_by_every_worker_that_the_test_plays() -> None:
    result = tell.using(broadcast=True).enqueue()
    noop.using(worker_names=["gamma"]).enqueue()
    runs = run_due(workers=["alpha", "beta"])
    assert sorted(run.worker_name for run in runs) == ["alpha", "beta"]
    result.refresh()
    assert [value[1] for value in result.return_value] == ["alpha", "beta"]
    assert set(Worker.objects.values_list("name", "status")) == {
        ("alpha", "stopped"),
        ("beta", "stopped"),
    }
    alone = tell.using(broadcast=True).enqueue()
    assert {run.worker_name for run in run_due()} == {"testing", "gamma"}
    alone.refresh()
    assert alone.status == "succeeded"


def test_a_failed_part_of_a_broadcast_is_tried_again_by_its_worker() -> None:
    fail_until.using(broadcast=True).enqueue(3)
    assert [run.status for run in run_due(workers=["a", "b"], backoff="skip")][-1] == "succeeded"


def test_paused_queues_and_unknown_names_are_left_alone() -> None:
    noop.enqueue()
    control.pause("default")
    assert run_due() == []
    control.resume("default")
    Task.objects.update(name="gone.away")
    assert [run.outcome for run in run_due()] == ["parked"]


def test_operations_are_done() -> None:
    noop.enqueue_many([((), {})] * 3)
    control.start_operation("cancel", control.TaskFilter(name=noop.name))
    assert run_due(add) == []
    assert set(Task.objects.values_list("status", flat=True)) == {"cancelled"}


@override_settings(TASKQUEUE={"MAX_ATTEMPTS": 2, "RETENTION": {"succeeded": 0}})
def test_the_settings_hold() -> None:
    noop.enqueue()
    fail.using(backoff=Fixed(60)).enqueue()
    run_due()
    assert run_due() == []
    assert Task.objects.get().status == "retrying"


def test_give_up_fails_at_once() -> None:
    give_up.enqueue()
    with pytest.raises(GiveUp):
        run_due(errors="raise")


@pytest.mark.django_db(transaction=True)
def test_where_tests_commit_bodies_commit_too() -> None:
    mark.enqueue()
    mark_atomically.enqueue()
    fail.enqueue()
    add.using(workers=2).enqueue(1)
    tell.using(broadcast=True).enqueue()
    runs = run_due()
    assert sorted(run.status for run in runs)[0] == "failed"
    assert {task.status for task in Task.objects.exclude(name=fail.name)} == {"succeeded"}
    connection.close()
    assert Effect.objects.count() == 2
    with pytest.raises(DatabaseError), transaction.atomic():
        Effect.objects.create()


async def _from_async_code() -> list[str]:
    await add.aenqueue(1)
    await perform_async.aenqueue("x")
    return [run.status for run in await arun_due()]


async def _count() -> int:
    return await Effect.objects.acount()


def test_from_async_code() -> None:
    from asgiref.sync import async_to_sync

    play["x"] = _count
    assert async_to_sync(_from_async_code)() == ["succeeded", "succeeded"]
    assert Task.objects.count() == 2
