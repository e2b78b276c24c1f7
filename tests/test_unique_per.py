"""`unique_per`: a key makes one task for each minute, hour, day or week, or span of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from taskqueue import DuplicateTask, InvalidTask
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.periods import period_of
from taskqueue.models import Task
from taskqueue.monitoring.why import why
from tests.engine.steps import claim_one, end, past, task_of
from tests.sample.tasks import add, echo

pytestmark = pytest.mark.django_db
# Far from the end of any period, and to come: the tests pass at any time of the day.
NOON = (timezone.now() + timedelta(days=3)).replace(hour=12, minute=30, second=30, microsecond=0)
HOUR = timedelta(hours=1)
hourly = add.using(unique_key=True, unique_per="hour")


def test_a_key_makes_one_task_for_each_hour_in_which_one_is_due() -> None:
    first = hourly.using(run_after=NOON).enqueue(1)
    again = hourly.using(run_after=NOON + timedelta(minutes=20)).enqueue(1)
    assert (again.id, again.created) == (first.id, False)
    assert hourly.using(run_after=NOON + HOUR).enqueue(1).created
    assert hourly.using(run_after=NOON).enqueue(2).created
    assert Task.objects.count() == 3


def test_the_key_is_held_until_the_end_of_the_period_also_by_one_that_has_ended() -> None:
    weekly = echo.using(unique_key="report", unique_per="week")
    first = weekly.enqueue()
    row = task_of(first)
    zone = timezone.get_default_timezone()
    period = period_of("week", row.run_after, zone)
    assert row.unique_key == f"report@{period.label}"
    assert row.unique_until == period.ends_at
    end(claim_one(), OutcomeKind.SUCCEEDED)
    assert weekly.enqueue().id == first.id
    assert why(task_of(first))[-1].code == "key_held"


@pytest.mark.parametrize("key", [True, ("a",), ["a"], "text", lambda a: f"made of {a}"])
def test_it_works_with_every_kind_of_key(key: Any) -> None:
    daily = add.using(unique_key=key, unique_per="day", run_after=NOON)
    first = daily.enqueue(1)
    assert daily.enqueue(1).id == first.id
    assert daily.using(run_after=NOON + timedelta(days=1)).enqueue(1).created


def test_a_call_without_a_key_is_an_ordinary_one() -> None:
    free = add.using(unique_key=lambda a: None, unique_per="day")
    assert [free.enqueue(1).created, free.enqueue(1).created] == [True, True]
    assert not Task.objects.filter(holds_unique_key=True).exists()


def test_a_span_of_time_is_counted_from_1970() -> None:
    quarter = echo.using(unique_key="k", unique_per=timedelta(minutes=15))
    for minute, created in ((0, True), (14, False), (15, True), (29, False)):
        when = NOON.replace(minute=minute)
        assert quarter.using(run_after=when).enqueue().created is created


def test_a_duplicate_raises_or_replaces_as_without_a_period() -> None:
    later = hourly.using(run_after=NOON)
    first = later.enqueue(1)
    with pytest.raises(DuplicateTask) as refused:
        later.using(on_duplicate="raise").enqueue(1)
    assert refused.value.result.id == first.id  # type: ignore[attr-defined]
    with pytest.raises(DuplicateTask) as refused:
        later.using(on_duplicate="raise").enqueue_many([((2,), {}), ((1,), {})])
    assert refused.value.place == 1
    moved = hourly.using(run_after=NOON + timedelta(minutes=10), on_duplicate="replace").enqueue(1)
    assert (moved.id, moved.updated) == (first.id, True)


def test_options_that_conflict_with_unique_per_are_refused() -> None:
    with pytest.raises(InvalidTask, match="unique_per needs a unique_key"):
        add.using(unique_per="hour")
    with pytest.raises(InvalidTask, match="leave out unique_for"):
        hourly.using(unique_for="kept")
    with pytest.raises(InvalidTask, match="may have at most 244 characters"):
        echo.using(unique_key="k" * 255, unique_per="day").enqueue()
    with pytest.raises(InvalidTask, match="too late for unique_per"):
        hourly.using(run_after=datetime(9999, 12, 31, 23, 59, tzinfo=UTC)).enqueue(1)
    assert hourly.using(unique_key=None).enqueue(1).created


def test_an_expired_key_is_given_to_the_next_call() -> None:
    once = echo.using(unique_key="k", unique_per="week")
    first = once.enqueue()
    Task.objects.filter(id=first.id).update(unique_until=past())
    assert once.enqueue().created


BERLIN, INDIA = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")


@pytest.mark.parametrize(
    ("per", "zone", "moment", "label", "ends_at"),
    [
        ("minute", UTC, "2026-11-25T10:59:59.9", "2026-11-25T10:59+0000", "2026-11-25T11:00"),
        ("hour", UTC, "2026-11-25T10:00", "2026-11-25T10+0000", "2026-11-25T11:00"),
        ("hour", INDIA, "2026-11-25T10:00", "2026-11-25T15+0530", "2026-11-25T10:30"),
        # The clock shows 02:30 twice that night.
        ("hour", BERLIN, "2026-10-25T00:30", "2026-10-25T02+0200", "2026-10-25T01:00"),
        ("hour", BERLIN, "2026-10-25T01:30", "2026-10-25T02+0100", "2026-10-25T02:00"),
        # There the clock is put back by half an hour, from 02:00 to 01:30.
        ("hour", LORD_HOWE, "2026-04-04T14:45", "2026-04-05T01+1100", "2026-04-04T15:00"),
        ("hour", LORD_HOWE, "2026-04-04T15:15", "2026-04-05T01+1030", "2026-04-04T15:30"),
        ("day", BERLIN, "2026-10-24T22:00", "2026-10-25", "2026-10-25T23:00"),
        ("day", BERLIN, "2026-03-29T12:00", "2026-03-29", "2026-03-29T22:00"),
        ("week", BERLIN, "2026-11-22T22:59", "2026-W47", "2026-11-22T23:00"),
        ("week", UTC, "2027-01-01T00:00", "2026-W53", "2027-01-04T00:00"),
        ("600", UTC, "1970-01-01T00:19:59", "600s:1", "1970-01-01T00:20"),
        ("1.5", UTC, "1970-01-01T00:00:03", "1.5s:2", "1970-01-01T00:00:04.5"),
    ],
)
def test_a_period_follows_the_clock_of_its_zone(
    per: str, zone: Any, moment: str, label: str, ends_at: str
) -> None:
    found = period_of(per, datetime.fromisoformat(moment).replace(tzinfo=UTC), zone)
    assert found == (label, datetime.fromisoformat(ends_at).replace(tzinfo=UTC))


@pytest.mark.parametrize("per", ["minute", "hour", "day", "week", "600", "86400", "7"])
@pytest.mark.parametrize("zone", [UTC, INDIA, BERLIN, LORD_HOWE], ids=str)
def test_periods_follow_each_other_without_a_gap(per: str, zone: Any) -> None:
    """Each moment lies before the end of its period, and that end begins the next one."""
    instant = timedelta(microseconds=1)
    for day in ("2026-03-28", "2026-04-04", "2026-10-03", "2026-10-24", "2026-12-31"):
        moment = datetime.fromisoformat(day).replace(tzinfo=UTC)
        for _ in range(100):
            found = period_of(per, moment, zone)
            assert found.ends_at > moment
            assert period_of(per, found.ends_at - instant, zone) == found
            assert period_of(per, found.ends_at, zone).label != found.label
            moment = found.ends_at
