"""Windows of the day: from, to, every, days of the week."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules import DailyWindow, Rule

MINUTE = timedelta(minutes=1)


def due(rule: Rule, begin: datetime, days: int = 1) -> list[str]:
    """The times as the clock of UTC shows them, from `begin` on."""
    until = begin + timedelta(days=days)
    return [f"{at:%d %H:%M}" for at in rule.between(begin - timedelta(microseconds=1), until)]


def test_it_is_due_from_first_to_last_on_its_days() -> None:
    rule = DailyWindow("09:00", "10:30", every=45 * MINUTE, days="mon-fri", tz="Europe/Berlin")

    friday_to_monday = due(rule, datetime(2026, 1, 2, tzinfo=UTC), days=4)

    assert friday_to_monday == [
        "02 08:00", "02 08:45", "02 09:30", "05 08:00", "05 08:45", "05 09:30",
    ]  # fmt: skip


def test_it_goes_on_past_midnight_where_last_is_earlier() -> None:
    rule = DailyWindow("23:00", "01:00", every=3600, days="fri")

    assert due(rule, datetime(2026, 1, 1, tzinfo=UTC), days=5) == [
        "02 23:00", "03 00:00", "03 01:00",
    ]  # fmt: skip
    assert rule.after(datetime(2026, 1, 3, 0, 30, tzinfo=UTC)) == datetime(
        2026, 1, 3, 1, tzinfo=UTC
    )


def test_it_starts_afresh_on_each_day() -> None:
    rule = DailyWindow("00:00", "23:59", every=timedelta(hours=7))

    assert due(rule, datetime(2026, 1, 1, tzinfo=UTC), days=1) == [
        "01 00:00", "01 07:00", "01 14:00", "01 21:00", "02 00:00",
    ]  # fmt: skip


def test_a_window_of_one_time_is_due_once_a_day_whatever_the_clock_does() -> None:
    rule = DailyWindow("02:30", "02:30", every=1800, tz="Europe/Berlin")

    assert due(rule, datetime(2026, 3, 28, tzinfo=UTC), 3) == ["28 01:30", "29 01:00", "30 00:30"]
    assert due(rule, datetime(2026, 10, 24, tzinfo=UTC), 3) == ["24 00:30", "25 00:30", "26 01:30"]


def test_a_window_on_both_sides_of_a_change_keeps_its_pace() -> None:
    rule = DailyWindow("01:00", "04:00", every=1800, tz="Europe/Berlin")

    assert due(rule, datetime(2026, 3, 29, tzinfo=UTC), 1)[:5] == [
        "29 00:00", "29 00:30", "29 01:00", "29 01:30", "29 02:00",
    ]  # fmt: skip
    assert len(due(rule, datetime(2026, 10, 24, 22, tzinfo=UTC))) == 9


def test_a_pace_that_the_shift_does_not_fit_is_one_of_the_wall_clock() -> None:
    rule = DailyWindow("01:00", "04:00", every=45 * MINUTE, tz="Europe/Berlin")

    # 02:30 does not exist, and runs at 03:00; on the other day it exists twice, and runs once.
    assert due(rule, datetime(2026, 3, 29, tzinfo=UTC))[:4] == [
        "29 00:00", "29 00:45", "29 01:00", "29 01:15",
    ]  # fmt: skip
    assert due(rule, datetime(2026, 10, 24, 22, tzinfo=UTC)) == [
        "24 23:00", "24 23:45", "25 00:30", "25 02:15", "25 03:00",
    ]  # fmt: skip


def test_a_window_around_the_clock_keeps_its_pace_wherever_it_begins() -> None:
    rule = DailyWindow("02:30", "02:00", every=1800, tz="Europe/Berlin")
    for begin in (datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)):
        times = list(rule.between(begin, begin + timedelta(days=1)))
        assert times == [begin + 30 * MINUTE * step for step in range(1, 49)]


@pytest.mark.parametrize(
    ("days", "names"),
    [
        ("mon-fri", ("mon", "tue", "wed", "thu", "fri")),
        ("Mon, WED", ("mon", "wed")),
        ("sat-mon", ("mon", "sat", "sun")),
        ("monday", ("mon",)),
        (["sun", "mon", "sun"], ("mon", "sun")),
    ],
)
def test_days_are_names(days: Any, names: tuple[str, ...]) -> None:
    assert DailyWindow("09:00", "10:00", every=60, days=days).days == names


def test_times_may_be_texts_or_times() -> None:
    one = DailyWindow("09:00", "10:00:30", every=60, days="mon")
    same = DailyWindow(time(9), time(10, 0, 30), every=MINUTE, days=["Monday"])

    assert one == same
    assert hash(one) == hash(same)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"first": "9"}, "first cannot be '9'"),
        ({"first": "24:00"}, "first cannot be"),
        ({"last": None}, "last cannot be"),
        ({"last": "٠٩:00"}, "last cannot be"),
        ({"first": time(9, tzinfo=UTC)}, "without a zone"),
        ({"first": time(9, 0, 0, 5)}, "finer than a second"),
        ({"every": 0.5}, "finer than a second"),
        ({"every": 86_401}, "at most one day"),
        ({"every": None}, "number of seconds"),
        ({"days": ""}, "not a day of the week"),
        ({"days": []}, "days is empty"),
        ({"days": "mon-wed-fri"}, "not a range of days"),
        ({"days": "tusday"}, "Did you mean 'tuesday'"),
        ({"days": "1-5"}, "not a day of the week"),
        ({"days": [1]}, "numbers mean different days"),
        ({"days": 5}, "days must be"),
        ({"tz": "Europe/Berlim"}, "Did you mean 'Europe/Berlin'"),
    ],
)
def test_wrong_values_are_refused(given: dict[str, Any], says: str) -> None:
    values = {"first": "09:00", "last": "17:00", "every": 60} | given

    with pytest.raises(InvalidSchedule, match=says):
        DailyWindow(**values).check()


def test_a_window_that_never_opens_between_start_and_end_is_refused() -> None:
    start = datetime(2026, 1, 2, tzinfo=UTC)  # a Friday
    rule = DailyWindow(
        "09:00", "17:00", every=60, days="sun", start=start, end=start + timedelta(days=1)
    )

    with pytest.raises(InvalidSchedule, match="never fires"):
        rule.check()


def test_at_the_end_of_the_calendar_nothing_is_due_any_more() -> None:
    rule = DailyWindow("09:00", "17:00", every=60, tz="America/New_York")

    assert rule.after(datetime.max.replace(tzinfo=UTC)) is None
    assert rule.after(datetime.min.replace(tzinfo=UTC)) is not None


@pytest.mark.parametrize(
    ("days", "last", "text"),
    [
        ("mon-fri", "17:30", "from 09:00 to 17:30, Monday to Friday"),
        ("mon-sun", "02:00", "from 09:00 to 02:00 the next day, every day"),
        ("fri-mon", "17:30:15", "from 09:00 to 17:30:15, Friday to Monday"),
        ("mon,wed,fri", "17:30", "from 09:00 to 17:30, Monday, Wednesday and Friday"),
        ("sun", "17:30", "from 09:00 to 17:30, Sunday"),
    ],
)
def test_it_says_in_words_when_it_is_due(days: str, last: str, text: str) -> None:
    rule = DailyWindow("09:00", last, every=1800, days=days, tz="Europe/Berlin")

    assert rule.text == f"Every 30 minutes {text} (Europe/Berlin)"
