"""Every, AfterEnd and Once: rules that no wall clock disturbs, and limits of all rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules import AfterEnd, Every, Once, Rule

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


def test_every_counts_from_its_start() -> None:
    rule = Every(90, start=NEW_YEAR + timedelta(seconds=7))

    assert rule.after(NEW_YEAR) == NEW_YEAR + timedelta(seconds=7)
    assert rule.after(NEW_YEAR + timedelta(seconds=7)) == NEW_YEAR + timedelta(seconds=97)


def test_every_counts_from_the_epoch_without_a_start() -> None:
    assert Every(days=7).after(NEW_YEAR) == datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=7)


def test_every_does_not_drift() -> None:
    rule = Every(1.1, start=NEW_YEAR)
    turn = 10_000_000

    later = NEW_YEAR + timedelta(microseconds=turn * 1_100_000)

    assert rule.after(later - timedelta(microseconds=1)) == later
    assert rule.after(later) == later + timedelta(seconds=1.1)


def test_units_add_up_to_an_interval() -> None:
    assert Every(weeks=1, days=1, hours=1, minutes=1, seconds=1) == Every(694_861)
    assert Every(timedelta(minutes=1)) == Every(60.0) == Every(minutes=1)


@pytest.mark.parametrize("kind", [Every, AfterEnd])
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "give an interval"),
        ({"interval": 0}, "at least 0.05 seconds"),
        ({"interval": 0.049}, "finer than 50 milliseconds is refused"),
        ({"interval": -5}, "at least 0.05 seconds"),
        ({"interval": timedelta(milliseconds=1)}, "finer than 50 milliseconds is refused"),
        ({"interval": float("nan")}, "finite"),
        ({"interval": float("inf")}, "finite"),
        ({"interval": 10**400}, "at most 100 years"),
        ({"interval": timedelta(days=50_000)}, "at most 100 years"),
        ({"interval": "60"}, "number of seconds"),
        ({"interval": True}, "number of seconds"),
        ({"interval": 60, "minutes": 1}, "not both"),
        ({"minutes": "1"}, "minutes must be a number"),
        ({"minutes": -1, "hours": 1}, "minutes must be"),
        ({"minutes": float("nan")}, "finite"),
        ({"weeks": 10**9}, "at most 100 years"),
        ({"interval": 60, "start": datetime(2026, 1, 1)}, "has no time zone"),
        ({"interval": 60, "end": "2026-01-01"}, "aware datetime"),
        ({"interval": 60, "start": NEW_YEAR, "end": NEW_YEAR - timedelta(1)}, "later than end"),
        (
            {"interval": 60, "end": datetime.max.replace(tzinfo=timezone(-timedelta(hours=5)))},
            "years 1 to 9999",
        ),
    ],
)
def test_wrong_values_are_refused(kind: Any, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSchedule, match=says):
        kind(**given).check()


def test_start_and_end_may_be_the_one_time_at_which_it_is_due() -> None:
    rule = Every(3600, start=NEW_YEAR, end=NEW_YEAR)

    rule.check()
    assert rule.after(NEW_YEAR - timedelta(days=1)) == NEW_YEAR


def test_a_rule_that_ends_before_it_can_be_due_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="never fires"):
        AfterEnd(days=1, end=datetime.min.replace(tzinfo=UTC)).check()


def test_a_number_too_long_to_be_shown_is_refused_all_the_same() -> None:
    with pytest.raises(InvalidSchedule, match="at most 100 years"):
        Every(10**5000).check()


def test_after_the_end_counts_from_the_end_of_the_last_run() -> None:
    rule = AfterEnd(minutes=5)

    assert rule.waits_for_end
    assert rule.after(NEW_YEAR) == NEW_YEAR + timedelta(minutes=5)


def test_after_the_end_is_never_due_before_start_nor_past_end() -> None:
    rule = AfterEnd(minutes=5, start=NEW_YEAR, end=NEW_YEAR + timedelta(minutes=7))

    assert rule.after(NEW_YEAR - timedelta(days=1)) == NEW_YEAR
    assert rule.after(NEW_YEAR - timedelta(minutes=1)) == NEW_YEAR + timedelta(minutes=4)
    assert rule.after(NEW_YEAR + timedelta(minutes=2)) == NEW_YEAR + timedelta(minutes=7)
    assert rule.after(NEW_YEAR + timedelta(minutes=3)) is None


def test_once_is_due_once() -> None:
    rule = Once(NEW_YEAR)

    assert rule.after(NEW_YEAR - timedelta(seconds=1)) == NEW_YEAR
    assert rule.after(NEW_YEAR) is None
    assert (rule.start, rule.end, rule.waits_for_end) == (None, None, False)


@pytest.mark.parametrize("at", [None, "2026-01-01", 0, datetime(2026, 1, 1)])
def test_once_wants_an_aware_datetime(at: object) -> None:
    with pytest.raises(InvalidSchedule, match="aware datetime"):
        Once(at).check()  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", [Every(60), AfterEnd(60), Once(NEW_YEAR)])
def test_at_the_end_of_the_calendar_nothing_is_due_any_more(rule: Rule) -> None:
    assert rule.after(LAST) is None
    assert rule.after(datetime.max.replace(tzinfo=timezone(-timedelta(hours=12)))) is None


def test_a_naive_moment_is_an_error() -> None:
    with pytest.raises(ValueError, match="aware"):
        Every(60).after(datetime(2026, 1, 1))


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Every(10), "Every 10 seconds"),
        (Every(1.5), "Every 1.5 seconds"),
        (Every(60), "Every minute"),
        (Every(hours=1, minutes=30), "Every 1 hour 30 minutes"),
        (Every(weeks=2), "Every 14 days"),
        (AfterEnd(minutes=5), "5 minutes after the last end"),
        (AfterEnd(60), "1 minute after the last end"),
        (Once(datetime(2026, 12, 1, 9, tzinfo=UTC)), "Once, at 2026-12-01 09:00:00 UTC"),
        (Every(10, start=NEW_YEAR), "Every 10 seconds, from 2026-01-01 00:00:00 UTC"),
    ],
)
def test_it_says_in_words_when_it_is_due(rule: Rule, text: str) -> None:
    assert rule.text == text
