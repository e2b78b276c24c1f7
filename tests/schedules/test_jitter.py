"""Schedules whose runs start up to so much after their nominal times."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taskqueue import AfterEnd, Cron, DailyWindow, Every, Scheduled, schedules, task, workflow
from taskqueue.declarations.declared_schedules import check_rule
from taskqueue.engine.schedules.reading import next_starts
from taskqueue.engine.schedules.times import delay_of
from taskqueue.exceptions import InvalidSchedule
from taskqueue.models import Occurrence, Schedule, Workflow
from taskqueue.workflows import Builder
from tests.sample.tasks import noop
from tests.schedules.steps import HOURLY, NOON, at, hours_of, make, reasons, serve, started

pytestmark = pytest.mark.django_db
HALF_HOUR = timedelta(minutes=30)


def delay(schedule: Schedule, hours: float) -> timedelta:
    return delay_of(schedule, at(hours))


def test_a_run_starts_after_its_time_by_less_than_the_jitter() -> None:
    schedule = make(jitter=1800, overlap="allow")
    delays = {delay(schedule, hours) for hours in range(1, 200)}
    assert all(timedelta(0) <= each < HALF_HOUR for each in delays)
    assert min(delays) < HALF_HOUR / 10
    assert max(delays) > HALF_HOUR * 0.9
    assert len(delays) > 190

    start = at(1) + delay(schedule, 1)
    Schedule.objects.update(next_at=start)
    serve(start - timedelta(milliseconds=1))
    assert started() == []
    serve(start)
    assert started() == [1]
    assert Occurrence.objects.get().nominal_at == at(1), "The nominal time stays what it is."


def test_the_preview_is_what_then_happens() -> None:
    schedule = make(jitter=HALF_HOUR, overlap="allow")
    previewed = next_starts(schedule, HOURLY, NOON, count=5)
    begun = []
    for start in previewed:
        serve(start - timedelta(milliseconds=1))
        assert len(started()) == len(begun)
        serve(start)
        begun.append(start)
        assert len(started()) == len(begun)
    assert hours_of() == [1, 2, 3, 4, 5]
    assert previewed == [at(hours) + delay(schedule, hours) for hours in range(1, 6)]


def test_schedules_of_one_rule_are_spread_by_their_names() -> None:
    delays = {delay_of(Schedule(name=f"s{number}", jitter=HALF_HOUR), NOON) for number in range(20)}
    assert len(delays) == 20


def test_a_jitter_longer_than_the_interval_keeps_the_order() -> None:
    schedule = make(Every(minutes=1), jitter=1800, missed="all", overlap="allow")
    starts = next_starts(schedule, Every(minutes=1), NOON, count=60)
    assert starts == sorted(starts)
    later = next_starts(schedule, Every(minutes=1), NOON + HALF_HOUR, count=30)
    assert [start for start in starts if start > NOON + HALF_HOUR][:20] == later[:20]


@pytest.mark.parametrize(
    "rule",
    [Every(minutes=10), Cron("*/10 * * * *"), DailyWindow("08:00", "08:30", every=600)],
    ids=str,
)
def test_a_jitter_longer_than_every_interval_is_refused(rule: Any) -> None:
    if isinstance(rule, DailyWindow):  # From one day to the next it is longer.
        schedules.create("s", noop, rule, jitter=1800)
        return
    with pytest.raises(InvalidSchedule, match="at most the interval of the rule, 0:10:00"):
        schedules.create("s", noop, rule, jitter=601)
    schedules.create("s", noop, rule, jitter=600)
    with pytest.raises(InvalidSchedule, match="at most the interval"):
        schedules.edit("s", jitter=1800)
    schedules.edit("s", jitter=1800, missed="all")
    schedules.edit("s", missed="window", missed_window=3600, overlap="queue_all")
    with pytest.raises(InvalidSchedule, match="choose missed='all' with overlap='queue_all'"):
        schedules.edit("s", overlap="skip")


def test_a_stored_jitter_that_is_too_long_prevents_no_other_edit() -> None:
    schedules.create("s", noop, Every(minutes=10))
    Schedule.objects.update(jitter=timedelta(hours=1))
    schedules.edit("s", enabled=False)
    schedules.edit("s", max_runs=3, jitter=3600, rule=Every(minutes=10))
    schedules.run_now("s", kwargs={})
    assert not Schedule.objects.get().is_enabled
    for changes in ({"rule": Every(minutes=20)}, {"jitter": 1800}, {"missed": "skip"}):
        with pytest.raises(InvalidSchedule, match="at most the interval"):
            schedules.edit("s", **changes)
    schedules.edit("s", jitter=600)


def test_a_run_delayed_by_jitter_is_not_missed() -> None:
    schedule = make(jitter=1800, missed="skip", overlap="allow")
    start = at(1) + delay(schedule, 1)
    Schedule.objects.update(next_at=start)
    serve(start + timedelta(seconds=30))
    assert (started(), reasons()) == ([1], {})


def test_a_schedule_that_waits_for_an_end_is_delayed_too() -> None:
    schedule = make(AfterEnd(hours=1), jitter=1800)
    assert schedule.next_at == NOON
    serve(NOON)
    Schedule.objects.get().last_task.delete()
    serve(at(0.5))
    next_at = Schedule.objects.get().next_at
    assert next_at is not None
    assert at(1.5) <= next_at < at(2)


def test_another_jitter_forgets_no_time_that_waits_for_its_delay() -> None:
    now = timezone.now()
    schedule = make(Every(days=1, start=now - timedelta(seconds=5)), jitter=86_400, since=now)
    Schedule.objects.update(
        served_until=now - timedelta(seconds=10), next_at=now + timedelta(hours=1)
    )
    schedules.edit(schedule.name, jitter=None)
    assert Schedule.objects.get().next_at == now - timedelta(seconds=5)


def test_workflows_are_delayed_as_tasks_are() -> None:
    @workflow(name="tests.jittered")
    def jittered(flow: Builder) -> None:
        flow.step(noop.s())

    try:
        schedule = make(task=jittered, jitter=1800)
        Schedule.objects.update(next_at=at(1) + delay(schedule, 1))
        serve(at(1))
        assert not Workflow.objects.exists()
        serve(at(1) + delay(schedule, 1))
        assert Workflow.objects.get().nominal_at == at(1)
    finally:
        from taskqueue.declarations.workflows.workflow import workflows

        del workflows._definitions["tests.jittered"]


@pytest.mark.parametrize("jitter", [0, -1, 86_401, "soon", True])
def test_a_jitter_that_cannot_be_is_refused(jitter: Any) -> None:
    with pytest.raises(InvalidSchedule, match="jitter"):
        schedules.create("s", noop, HOURLY, jitter=jitter)
    with pytest.raises(InvalidSchedule, match="jitter"):
        check_rule(Scheduled(HOURLY, jitter=jitter), "s")


def test_it_can_be_declared() -> None:
    definition = task(name="tests.declared", schedule=Scheduled(HOURLY, jitter=60, max_runs=3))(
        noop.body
    )
    try:
        schedules.sync()
        row = Schedule.objects.get(name="tests.declared")
        assert (row.jitter, row.max_runs) == (timedelta(seconds=60), 3)
        assert schedules.sync().changed == []
    finally:
        from taskqueue.declarations.definition import registry

        del registry._definitions[definition.name]
