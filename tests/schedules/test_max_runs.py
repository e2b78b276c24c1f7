"""Schedules that are over after so many runs."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from taskqueue import AfterEnd, Every, schedules
from taskqueue.engine.schedules.reading import conditions, why_not_running
from taskqueue.exceptions import InvalidSchedule
from taskqueue.models import Occurrence, Schedule
from tests.sample.tasks import noop
from tests.schedules.steps import HOURLY, NOON, at, end, hours_of, make, reasons, serve, started

pytestmark = pytest.mark.django_db


def row() -> Schedule:
    return Schedule.objects.get()


def test_after_the_last_run_it_is_over_and_records_no_more_times() -> None:
    make(max_runs=2, overlap="allow")
    for hours in (1, 2, 3, 4):
        serve(at(hours))
    assert started() == [1, 2]
    assert hours_of() == [1, 2]
    assert (row().next_at, row().run_count) == (None, 2)
    assert conditions(row(), at(4)) == ["over"]
    assert why_not_running(row()).startswith("All 2 runs of its rule began.")


def test_of_times_that_come_together_only_so_many_run() -> None:
    make(max_runs=3, missed="all", overlap="allow")
    serve(at(10))
    assert started() == [1, 2, 3]
    assert (hours_of(), row().next_at) == ([1, 2, 3], None)


def test_a_skipped_time_is_no_run() -> None:
    make(max_runs=2, overlap="skip")
    serve(at(1))
    serve(at(2))
    assert list(reasons()) == [2]
    end(1, when=at(2))
    assert row().run_count == 1


def test_a_run_by_hand_is_none_of_them() -> None:
    make(Every(days=1), since=timezone.now(), max_runs=1)
    schedules.run_now("s")
    assert row().run_count == 0
    assert row().next_at is not None


def test_a_preview_ends_with_the_last_run() -> None:
    make(Every(days=1), max_runs=3)
    assert len(schedules.preview("s", count=10)) == 3
    Schedule.objects.update(run_count=2)
    assert len(schedules.preview("s", count=10)) == 1


def test_one_that_waits_for_its_ends_is_over_too() -> None:
    make(AfterEnd(hours=1), max_runs=2)
    serve(NOON)
    end(0, when=at(0.5))
    serve(at(0.5))
    serve(at(1.5))
    end(1.5, when=at(2))
    serve(at(2))
    serve(at(9))
    assert started() == [0, 1.5]
    assert (row().next_at, conditions(row(), at(9))) == (None, ["over"])


def test_more_runs_let_it_go_on_from_now() -> None:
    make(Every(days=1), max_runs=1, overlap="allow")
    serve(at(24))
    assert conditions(row(), at(25)) == ["over"]
    schedules.edit("s", max_runs=2)
    assert row().next_at is not None
    assert Occurrence.objects.count() == 1, "What passed meanwhile is not made up for."
    assert why_not_running(row()) == ""


def test_fewer_runs_than_it_had_end_it_and_another_rule_begins_anew() -> None:
    make(Every(days=1), since=timezone.now(), max_runs=5)
    Schedule.objects.update(run_count=4)
    schedules.edit("s", max_runs=3)
    assert (row().next_at, row().run_count) == (None, 4)
    schedules.edit("s", rule=Every(days=2))
    assert row().run_count == 0
    assert row().next_at is not None


@pytest.mark.parametrize("number", [0, -1, 2**31, 1.5, True, "3"])
def test_a_number_of_runs_that_cannot_be_is_refused(number: Any) -> None:
    with pytest.raises(InvalidSchedule, match="max_runs"):
        schedules.create("s", noop, HOURLY, max_runs=number)
