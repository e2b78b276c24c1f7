"""Eager mode: what is enqueued runs at once, with every option."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test import TestCase

from taskqueue import RetryLater
from taskqueue.models import Task
from taskqueue.testing import StillDue, assert_enqueued, eager, run_due, travelling
from tests.sample import framework_tasks
from tests.sample.models import Effect
from tests.sample.tasks import add, echo, fail, mark, mark_atomically, noop, unique
from tests.testing.bodies import perform, perform_async, play, taken_back, tell

pytestmark = pytest.mark.django_db


def test_the_handle_tells_what_the_task_came_to() -> None:
    with eager():
        result = add.enqueue(1, b=2)
        assert (result.status, result.return_value, result.attempts) == ("succeeded", 3, 1)
        failed = fail.enqueue("no use")
        assert (failed.status, failed.errors[0].message) == ("failed", "no use")
    assert add.enqueue(1).status == "ready"
    assert_enqueued(add, times=2)


def test_every_option_is_heeded() -> None:
    options: dict[str, Any] = {
        "queue_name": "mail",
        "priority": 7,
        "max_attempts": 3,
        "timeout": 30,
        "deadline": 60,
        "expires_after": 60,
        "lease_duration": 60,
        "ping_interval": 5,
        "retention": 3600,
        "metadata": {"a": 1},
        "unique_key": "k",
        "unique_for": "kept",
    }
    with eager():
        result = tell.using(**options).enqueue()
        assert result.return_value[2] == {"a": 1}
        assert tell.using(**options).enqueue() == result
        assert add.using(workers=2).enqueue(1).return_value == [2, 2]
        assert add.using(worker_names=["a", "b"], workers=2).enqueue(2).return_value == [3, 3]
        assert add.using(broadcast=True).enqueue(3).return_value == [4]
    assert_enqueued(tell, queue_name="mail", priority=7, unique_key="k", metadata={"a": 1})


def test_a_later_task_stays_scheduled_until_the_test_travels() -> None:
    with eager():
        result = add.using(run_after=timedelta(hours=1)).enqueue(1)
        assert result.status == "scheduled"
        with travelling(3600):
            run_due()
        result.refresh()
        assert result.status == "succeeded"


def test_retries_go_to_their_end_at_once() -> None:
    def body() -> None:
        raise ValueError("again")

    play["x"] = body
    with eager():
        result = perform.enqueue("x")
    assert (result.status, result.attempts, len(result.errors)) == ("failed", 3, 3)


def test_errors_are_raised_from_the_enqueue_where_the_test_wants_it() -> None:
    with eager(errors="raise"), pytest.raises(ValueError, match="for the test"):
        fail.enqueue("for the test")
    assert Task.objects.get().status == "failed"
    with pytest.raises(ValueError, match="errors must be"):
        eager(errors=True)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="when must be 'enqueue' or 'commit'"):
        eager(when="later")  # type: ignore[arg-type]


def test_of_two_within_each_other_the_inner_serves() -> None:
    with eager():
        with eager(errors="raise"), pytest.raises(ValueError, match="inner"):
            fail.enqueue("inner")
        assert fail.enqueue("outer").status == "failed"
    with eager(errors="raise"):
        with eager():
            assert fail.enqueue("inner").status == "failed"
        with pytest.raises(ValueError, match="outer"):
            fail.enqueue("outer")
    assert noop.enqueue().status == "ready"


def test_they_may_end_in_any_order_and_more_than_once() -> None:
    outer, inner = eager(errors="raise"), eager()
    outer.start()
    inner.start()
    outer.stop()
    outer.stop()
    assert fail.enqueue().status == "failed"
    with inner:
        pass
    assert noop.enqueue().status == "succeeded"
    inner.stop()
    assert noop.enqueue().status == "ready"


def test_in_eager_mode_a_nested_task_runs_after_the_body() -> None:
    order: list[str] = []

    def outer() -> str:
        handle = perform.enqueue("inner")
        order.append(f"outer saw {handle.status}")
        return str(handle.id)

    play.update(outer=outer, inner=lambda: order.append("inner"))
    with eager():
        result = perform.enqueue("outer")
    assert order == ["outer saw ready", "inner"]
    assert perform.get_result(result.return_value).status == "succeeded"


def test_a_task_that_enqueues_itself_forever_is_reported() -> None:
    def body() -> None:
        perform.enqueue("x")

    play["x"] = body
    with eager(limit=50), pytest.raises(StillDue, match="after 50 attempts"):
        perform.enqueue("x")


def test_a_task_that_is_retried_forever_is_reported() -> None:
    def body() -> None:
        raise RetryLater(3600)

    play["x"] = body
    with eager(limit=20), pytest.raises(StillDue):
        perform.enqueue("x")


def test_many_at_once() -> None:
    with eager():
        results = add.enqueue_many([((n,), {}) for n in range(3)])
    assert [result.return_value for result in results] == [1, 2, 3]


def test_a_rollback_undoes_eager_tasks() -> None:
    with eager(), taken_back():
        assert mark.enqueue().status == "succeeded"
        assert mark_atomically.enqueue().status == "succeeded"
        assert mark_atomically.enqueue(5).status == "failed"
    assert not Task.objects.exists()
    assert not Effect.objects.exists()


def test_on_commit_where_the_test_lets_callbacks_run() -> None:
    with eager(when="commit"):
        with TestCase.captureOnCommitCallbacks(execute=True):
            with transaction.atomic():
                kept = add.enqueue(1)
                assert kept.status == "ready"
            with taken_back():
                add.enqueue(2)
        assert kept.return_value == 2
    assert Task.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_on_commit_where_tests_commit() -> None:
    with eager(when="commit", errors="raise"):
        with transaction.atomic():
            result = mark.enqueue()
            assert result.status == "ready"
        assert result.status == "succeeded"
        assert mark_atomically.enqueue().status == "succeeded"
    connection.close()
    assert Effect.objects.count() == 2


def test_tasks_of_the_framework_of_django() -> None:
    with eager():
        result = framework_tasks.add.enqueue(1, b=2)
        assert (result.status.name, result.return_value) == ("SUCCESSFUL", 3)
        assert result.started_at is not None
        failed = framework_tasks.fail.enqueue("no use")
        assert failed.status.name == "FAILED"
        assert failed.errors[0].exception_class is ValueError
        persisted = framework_tasks.persist.enqueue(4)
        assert (persisted.return_value, persisted.attempts) == (4, 4)
        assert framework_tasks.add_later.enqueue(1, 2).return_value == 3


async def _from_async_code() -> None:
    async with eager():
        result = await perform_async.aenqueue("x")
        assert result.return_value == "done"
        results = await add.aenqueue_many([((1,), {}), ((2,), {})])
        assert [each.return_value for each in results] == [2, 3]
        of_django = await framework_tasks.add_later.aenqueue(1, 2)
        assert of_django.return_value == 3


async def _enqueue_within() -> str:
    await echo.aenqueue("from the loop")
    return "done"


def test_from_async_code() -> None:
    play["x"] = _enqueue_within
    async_to_sync(_from_async_code)()
    assert_enqueued(echo, args=["from the loop"], status="succeeded")


@pytest.mark.usefixtures("taskqueue_eager")
def test_by_a_fixture() -> None:
    assert noop.enqueue().status == "succeeded"


@pytest.mark.taskqueue_eager(errors="raise")
def test_by_a_marker() -> None:
    assert unique.enqueue("a").return_value == "a"
    with pytest.raises(ValueError, match="it failed"):
        fail.enqueue()


@pytest.mark.taskqueue_eager
def test_by_a_marker_and_a_block_within_it() -> None:
    with eager(errors="raise"), pytest.raises(ValueError, match="it failed"):
        fail.enqueue()


def test_one_that_is_left_without_an_end() -> None:
    eager().__enter__()
    assert noop.enqueue().status == "succeeded"


def test_it_ends_with_its_test() -> None:
    assert noop.enqueue().status == "ready"
