"""Assertions on what was enqueued, and what they say where they fail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from asgiref.sync import async_to_sync

from taskqueue import ArgumentsDoNotBind, UnknownTask, schedules
from taskqueue.models import Task
from taskqueue.rules import Every
from taskqueue.testing import (
    aassert_enqueued,
    aassert_not_enqueued,
    aenqueued,
    assert_enqueued,
    assert_enqueues,
    assert_not_enqueued,
    captured,
    enqueued,
    run_due,
    travelling,
)
from tests.sample import framework_tasks
from tests.sample.tasks import add, echo, log_in, noop, unique
from tests.testing.bodies import taken_back

pytestmark = pytest.mark.django_db


def message(*args: Any, **expected: Any) -> str:
    """What it says where it fails."""
    with pytest.raises(AssertionError) as failure:
        assert_enqueued(*args, **expected)
    return str(failure.value)


def test_enqueued_tasks_are_found_in_every_status() -> None:
    first = add.enqueue(1)
    second = add.using(run_after=60).enqueue(2)
    noop.enqueue()
    run_due()
    assert enqueued(add) == enqueued("tests.sample.tasks.add") == [first, second]
    assert [result.status for result in enqueued(add)] == ["succeeded", "scheduled"]
    assert len(enqueued()) == 3
    assert assert_enqueued(add, args=[2]) == [second]
    assert assert_enqueued(add, times=2) == [first, second]
    assert_not_enqueued(echo)


def test_arguments_are_compared_as_the_body_gets_them() -> None:
    add.enqueue(1, b=2)
    assert_enqueued(add, args=(1, 2))
    assert_enqueued(add, kwargs={"a": 1, "b": 2})
    assert_not_enqueued(add, args=[1])
    add.enqueue(5)
    assert_enqueued(add, args=[5, 1])
    echo.enqueue((1, b"x"), {"deep": (2,)})
    assert_enqueued(echo, args=[(1, b"x"), {"deep": (2,)}])
    assert_enqueued(echo, args=[mock.ANY, {"deep": mock.ANY}])
    assert_enqueued(args=[5])


def test_an_assertion_that_could_never_hold_raises() -> None:
    with pytest.raises(ArgumentsDoNotBind):
        assert_not_enqueued(add, kwargs={"c": 1})
    with pytest.raises(UnknownTask, match="Did you mean"):
        assert_not_enqueued("tests.sample.tasks.ad")
    with pytest.raises(TypeError, match=r"no option 'queue'\. Did you mean 'queue_name'\?"):
        assert_not_enqueued(add, queue="mail")  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"no option 'bogus'\. Choose from args, kwargs, queue_name"
    ):
        assert_enqueued(bogus=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Pass a task or the name of one"):
        assert_not_enqueued([add])


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        ({"status": "failure"}, "status must be 'blocked' or .* or 'failed'"),
        ({"status": "SUCCEEDED"}, "not 'SUCCEEDED'"),
        ({"queue_name": "not a queue!"}, "queue_name must be 1 to 100"),
        ({"priority": 10**6}, "between -100 and 100"),
        ({"priority": True}, "priority"),
        ({"run_after": datetime(2040, 1, 1)}, "aware datetime"),
        ({"run_after": "tomorrow"}, "run_after"),
        ({"run_after": float("nan")}, "run_after"),
        ({"unique_key": ""}, "unique_key must not be empty"),
        ({"unique_key": str.upper}, "unique_key"),
        ({"unique_key": None}, "Leave it out to match any"),
        ({"args": None}, "Leave it out to match any"),
        ({"args": "one"}, "args must be a list"),
        ({"kwargs": ["a"]}, "kwargs must be a dict"),
        ({"metadata": "a"}, "metadata must be a dict"),
    ],
)
def test_a_value_that_no_task_ever_has_is_one_too(expected: dict[str, Any], reason: str) -> None:
    add.enqueue(1)
    for ask in (assert_enqueued, assert_not_enqueued, enqueued, assert_enqueues):
        with pytest.raises((TypeError, ValueError), match=reason):
            ask(add, **expected)


@pytest.mark.parametrize("times", [-1, True, 1.0, None])
def test_so_is_a_number_of_tasks_that_there_never_is(times: Any) -> None:
    for ask in (assert_enqueued, assert_enqueues):
        with pytest.raises(ValueError, match="times must be a whole number of 0 or more"):
            ask(times=times)


def test_an_assertion_accepts_mock_any() -> None:
    result = add.enqueue(1)
    names = ("queue_name", "priority", "run_after", "unique_key", "metadata", "status", "args")
    anything: dict[str, Any] = dict.fromkeys(names, mock.ANY)
    assert assert_enqueued(add, **anything) == [result]


def test_every_other_expectation() -> None:
    at = datetime(2040, 1, 1, tzinfo=UTC)
    add.using(
        queue_name="mail", priority=5, run_after=at, unique_key="k", metadata={"a": [1]}
    ).enqueue(1)
    assert_enqueued(
        add,
        queue_name="mail",
        priority=5,
        run_after=at,
        unique_key="k",
        metadata={"a": (1,)},
        status="scheduled",
    )
    for expected in (
        {"queue_name": "default"},
        {"priority": 0},
        {"run_after": at + timedelta(seconds=1)},
        {"unique_key": "l"},
        {"metadata": {}},
        {"status": "ready"},
    ):
        assert_not_enqueued(add, **expected)  # type: ignore[arg-type]


def test_a_delay_counts_from_the_enqueue() -> None:
    add.using(run_after=timedelta(minutes=5)).enqueue(1)
    echo.using(run_after=300).enqueue_many([((), {})])
    with travelling(60):
        assert_enqueued(add, run_after=300)
        assert_enqueued(echo, run_after=timedelta(minutes=5))
        assert_not_enqueued(add, run_after=0)
    noop.using(run_after=-5).enqueue()
    assert_enqueued(noop, run_after=-5)


def test_tasks_of_the_framework_of_django() -> None:
    framework_tasks.add.enqueue(1, b=2)
    assert_enqueued(framework_tasks.add, args=[1, 2])
    assert_enqueued("tests.sample.framework_tasks.add")


def test_a_failure_tells_what_was_enqueued_instead() -> None:
    assert message(add, args=[1]) == (
        "Expected 1 of tests.sample.tasks.add(1); found 0. Nothing was enqueued."
    )
    add.using(queue_name="mail").enqueue(2)
    noop.using(priority=3, unique_key="k").enqueue()
    assert message(add, args=[1], kwargs={"b": 2}, queue_name="mail", times=2) == (
        "Expected 2 of tests.sample.tasks.add(1, b=2) with queue_name='mail'; found 0. "
        "Enqueued:\n"
        "  tests.sample.tasks.add(2) with queue_name='mail': ready\n"
        "  tests.sample.tasks.noop() with queue_name='default', priority=3, unique_key='k': ready"
    )
    with pytest.raises(AssertionError, match=r"none of tests.sample.tasks.noop; found 1"):
        assert_not_enqueued(noop)


def test_a_failure_shows_no_secret() -> None:
    log_in.enqueue("ada", "swordfish")
    log_in.enqueue(user="bob", password="swordfish")
    Task.objects.create(name="gone.away", args=["swordfish"], crash_delay=timedelta(0))
    text = message(log_in, args=["eve", "sesame"])
    assert "swordfish" not in text
    assert "sesame" not in text
    assert "log_in('ada', '[redacted]')" in text
    assert "user='bob', password='[redacted]'" in text
    assert "gone.away(…)" in text


def test_a_failure_is_not_longer_than_can_be_read() -> None:
    echo.enqueue_many([(("x" * 10_000,), {})] * 30)
    text = message(noop)
    assert len(text) < 10_000
    assert text.endswith("… and 10 more")


def test_a_block_is_asked_for_what_it_enqueues() -> None:
    add.enqueue(0)
    with assert_enqueues(add, args=[1]) as tasks:
        result = add.enqueue(1)
        noop.enqueue()
    assert tasks == [result]
    with (
        pytest.raises(AssertionError, match=r"found 0\. Nothing was enqueued"),
        assert_enqueues(add),
    ):
        pass
    with pytest.raises(AssertionError, match="none of task"), assert_enqueues(times=0):
        add.enqueue(2)
    with pytest.raises(LookupError), assert_enqueues(add):
        raise LookupError


def test_a_block_gives_what_was_enqueued_in_it_and_stands() -> None:
    unique.enqueue("a")
    with captured() as tasks:
        first = add.enqueue(1)
        unique.enqueue("a")
        with taken_back():
            add.enqueue(2)
    assert tasks == [first]


def test_tasks_of_schedules_count() -> None:
    schedules.create("hourly", noop, Every(hours=1))
    with travelling(3600), assert_enqueues(noop, status="succeeded"):
        run_due()


async def _from_async_code() -> None:
    async with captured() as tasks, assert_enqueues(add):
        await add.aenqueue(1)
    await aassert_enqueued(add, args=[1])
    await aassert_not_enqueued(noop)
    assert await aenqueued() == tasks


def test_from_async_code() -> None:
    async_to_sync(_from_async_code)()
