"""Nominal times that passed while nobody served the schedule."""

from __future__ import annotations

from datetime import timedelta

import pytest

from taskqueue.models import Occurrence, Schedule
from tests.schedules.steps import HOURLY, MINUTE, at, hours_of, make, reasons, serve, started

pytestmark = pytest.mark.django_db


def test_a_run_in_time_starts_under_every_policy() -> None:
    for policy in ("skip", "latest", "all"):
        make(name=policy, missed=policy)
    make(name="window", missed="window", missed_window=60)

    serve(at(1) + timedelta(seconds=59))

    assert started() == [1, 1, 1, 1]
    assert reasons() == {}


def test_skip_runs_no_missed_times() -> None:
    make(missed="skip", overlap="allow")

    serve(at(3) + 2 * MINUTE)

    assert started() == []
    assert set(reasons().values()) == {"Missed: nobody served the schedule in time."}
    assert list(reasons()) == [1, 2, 3]


def test_skip_runs_the_nominal_time_that_has_just_come() -> None:
    make(missed="skip", overlap="allow")

    serve(at(3))

    assert started() == [3]
    assert list(reasons()) == [1, 2]


def test_latest_makes_up_for_all_that_was_missed_with_one_run() -> None:
    make(missed="latest", overlap="allow")

    serve(at(3) + 30 * MINUTE)

    assert started() == [3]
    assert reasons() == dict.fromkeys((1, 2), "Missed; the latest one makes up for it.")


def test_all_runs_everything_that_was_missed_the_oldest_first() -> None:
    make(missed="all", overlap="allow")

    serve(at(4) + 30 * MINUTE)

    assert started() == [1, 2, 3, 4]
    assert reasons() == {}


def test_window_runs_what_was_missed_by_no_more_than_that() -> None:
    make(missed="window", missed_window=timedelta(hours=2), overlap="allow")

    serve(at(4) + 30 * MINUTE)

    assert started() == [3, 4]
    assert reasons() == dict.fromkeys((1, 2), "Missed by more than 7200 s.")


def test_all_that_was_missed_runs_one_after_the_other_where_runs_must_not_overlap() -> None:
    make(missed="all", overlap="queue_all")

    serve(at(3))

    assert started() == [1]
    assert hours_of(status="waiting") == [2, 3]


def test_many_that_run_are_enqueued_in_several_transactions() -> None:
    make(missed="all", overlap="allow")

    waits = [serve(at(120)) for _ in range(3)]

    assert waits[:2] == [0, 0]
    assert started() == list(range(1, 121))
    assert reasons() == {}


def test_a_long_outage_is_served_in_batches_and_the_latest_still_runs_once() -> None:
    schedule = make(HOURLY, missed="latest", overlap="allow")
    now = at(1750) + 30 * MINUTE

    waits = [serve(now) for _ in range(4)]

    assert waits[:3] == [0, 0, 0]
    assert started() == [1750]
    rows = Occurrence.objects.filter(schedule=schedule, status="skipped").order_by("nominal_at")
    kept = [(row.nominal_at, row.nominal_until, row.count) for row in rows[:3]]
    assert kept == [(at(n * 500 + 1), at(n * 500 + 500), 500) for n in range(3)]
    assert sum(row.count for row in rows) == 1749
    assert Schedule.objects.get().next_at == at(1751)
