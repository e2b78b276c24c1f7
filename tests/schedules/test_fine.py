"""Rules with times within less than a second."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from taskqueue import AfterEnd, Every, rules
from taskqueue.engine.pruning import prune_fine_occurrences
from taskqueue.models import Occurrence, Schedule
from tests.engine.steps import past
from tests.schedules.steps import NOON, end, make, serve

pytestmark = pytest.mark.django_db
FAST = Every(seconds=0.05)


def ms(number: int) -> float:
    """So many milliseconds past noon, in hours."""
    return number / 3_600_000


def rows() -> list[tuple[int, str, int]]:
    """The occurrences: milliseconds past noon, status, how many times they stand for."""
    return [
        (round((row.nominal_at - NOON).total_seconds() * 1000), row.status, row.count)
        for row in Occurrence.objects.order_by("nominal_at")
    ]


def serve_at(milliseconds: int) -> float | None:
    return serve(NOON + timedelta(milliseconds=milliseconds))


@pytest.mark.parametrize("rule", [FAST, AfterEnd(0.05), Every(timedelta(milliseconds=250))])
def test_they_survive_json_and_have_words(rule: rules.Rule) -> None:
    assert rules.from_json(rule.as_json()) == rule
    assert "0.05 seconds" in rule.text or "0.25 seconds" in rule.text
    assert rule.is_fine


def test_each_time_has_its_run_and_the_next_one_is_awaited_exactly() -> None:
    make(FAST, overlap="allow")
    assert serve_at(50) == pytest.approx(0.05)
    assert serve_at(120) == pytest.approx(0.03)
    assert rows() == [(50, "enqueued", 1), (100, "enqueued", 1)]


def test_of_times_that_come_together_the_latest_runs_unless_all_are_to() -> None:
    make(FAST, overlap="allow")
    assert serve_at(275) == pytest.approx(0.025)
    assert rows() == [(50, "skipped", 4), (250, "enqueued", 1)]
    Occurrence.objects.all().delete()
    make(FAST, overlap="allow", missed="all", name="all")
    serve_at(275)
    assert rows() == [(number, "enqueued", 1) for number in range(50, 251, 50)]


def test_times_that_are_skipped_for_one_run_are_one_row() -> None:
    make(FAST)
    for number in range(50, 451, 50):
        serve_at(number)
    assert rows() == [(50, "enqueued", 1), (100, "skipped", 7 + 1)]
    end(ms(50), when=NOON + timedelta(milliseconds=460))
    serve_at(500)
    serve_at(550)
    assert rows()[2:] == [(500, "enqueued", 1), (550, "skipped", 1)]


def test_a_run_between_two_skips_leaves_them_apart() -> None:
    make(FAST, missed="all")
    serve_at(100)  # The first of them runs, and keeps the second from it.
    end(ms(50), when=NOON + timedelta(milliseconds=110))
    serve_at(200)
    assert [(number, status) for number, status, _ in rows()] == [
        (50, "ended"), (100, "skipped"), (150, "enqueued"), (200, "skipped"),
    ]  # fmt: skip


def test_their_occurrences_are_kept_for_an_hour() -> None:
    fast, slow = make(FAST), make(Every(seconds=1), name="slow")
    for schedule in (fast, slow):
        for minutes, status in ((90, "skipped"), (80, "enqueued"), (10, "skipped")):
            moment = past(timedelta(minutes=minutes))
            Occurrence.objects.create(
                schedule=schedule, status=status, nominal_at=moment, created_at=moment
            )
    assert prune_fine_occurrences(connection) == 1
    left = Occurrence.objects.filter(schedule=fast).values_list("status", flat=True)
    assert sorted(left) == ["enqueued", "skipped"]
    assert Occurrence.objects.filter(schedule=slow).count() == 3
    Schedule.objects.filter(id=fast.id).delete()
    assert prune_fine_occurrences(connection) == 0
