"""The options of a task are written with it, or come from the settings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.test import override_settings

from tests.engine.steps import future, past, task_of
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("delay", [60, 60.0, MINUTE])
def test_run_after_may_be_a_duration_from_now(delay: Any) -> None:
    definition = noop.using(run_after=delay)
    for result in (definition.enqueue(), *definition.enqueue_many([((), {})])):
        task = task_of(result)
        assert task.status == result.status == "scheduled"
        assert task.run_after - task.enqueued_at == MINUTE
        assert task.ready_at is result.ready_at is None


def test_run_after_may_be_a_moment_of_any_time_zone() -> None:
    moment = datetime(2100, 1, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    definition = noop.using(run_after=moment)
    for result in (definition.enqueue(), *definition.enqueue_many([((), {})])):
        assert result.status == "scheduled"
        assert task_of(result).run_after == moment


@pytest.mark.parametrize("moment", [past(), 0, -5, -0.5, timedelta(0), timedelta(-1)])
def test_a_time_that_has_come_makes_a_ready_task(moment: Any) -> None:
    definition = noop.using(run_after=moment)
    for result in (definition.enqueue(), *definition.enqueue_many([((), {})])):
        assert task_of(result).status == result.status == "ready"
        assert result.ready_at == result.enqueued_at


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=2))),
    ],
)
def test_the_first_and_the_last_moment_can_be_stored(moment: datetime) -> None:
    definition = noop.using(run_after=moment, deadline=moment)
    for result in (definition.enqueue(), *definition.enqueue_many([((), {})])):
        task = task_of(result)
        assert task.deadline_at == moment
        # What is over means now.
        assert task.run_after == max(moment, task.enqueued_at)


def test_limits_in_time_count_from_the_enqueue() -> None:
    definition = noop.using(deadline=MINUTE, expires_after=30, run_after=10)
    for result in (definition.enqueue(), *definition.enqueue_many([((), {})])):
        task = task_of(result)
        assert task.deadline_at == task.enqueued_at + MINUTE
        assert task.expires_at == task.enqueued_at + MINUTE / 2
        assert task.run_after == task.enqueued_at + MINUTE / 6


def test_a_deadline_may_be_a_moment() -> None:
    moment = future()
    assert task_of(noop.using(deadline=moment).enqueue()).deadline_at == moment


def test_options_are_written_with_the_task() -> None:
    definition = noop.using(
        queue_name="mail",
        priority=-7,
        max_attempts=4,
        max_crashes=2,
        crash_delay=1.5,
        lease_duration=60,
        retention=timedelta(days=400),
        metadata={"trace": [1]},
        timeout=5,
    )
    for result in (definition.enqueue(), *definition.enqueue_many([((), {})])):
        task = task_of(result)
        assert (task.queue_name, task.priority) == ("mail", -7)
        assert (task.max_attempts, task.max_crashes) == (4, 2)
        assert task.crash_delay == timedelta(seconds=1.5)
        assert task.lease_duration == MINUTE
        assert task.retention == timedelta(days=400)
        assert task.metadata == result.metadata == {"trace": [1]}
        assert task.options == {"timeout": 5.0}


def test_options_that_are_left_out_come_from_the_settings() -> None:
    settings = {"MAX_ATTEMPTS": 7, "MAX_CRASHES": 8, "CRASH_DELAY": 9}
    with override_settings(TASKQUEUE=settings):
        for result in (noop.enqueue(), *noop.enqueue_many([((), {})])):
            task = task_of(result)
            assert (task.max_attempts, task.max_crashes) == (7, 8)
            assert task.crash_delay == timedelta(seconds=9)
            assert (task.lease_duration, task.retention) == (None, None)
        own = task_of(noop.using(max_attempts=1, max_crashes=1, crash_delay=0).enqueue())
        assert (own.max_attempts, own.max_crashes, own.crash_delay) == (1, 1, timedelta(0))
    task = task_of(noop.enqueue())
    assert (task.max_attempts, task.max_crashes) == (1, 3)
    assert task.crash_delay == timedelta(seconds=10)
