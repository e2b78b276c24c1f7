"""Cron expressions: when they are due, and which are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules import Cron, Rule

FOREVER = datetime.max.replace(tzinfo=UTC)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


def first(rule: Rule, count: int, after: datetime) -> list[str]:
    return [f"{time:%m-%d %H:%M}" for time in islice(rule.between(after, FOREVER), count)]


def test_it_is_due_by_the_wall_clock_of_its_zone() -> None:
    rule = Cron("0 6 * * 1-5", tz="Asia/Shanghai")

    assert rule.after(utc(2026, 1, 2)) == utc(2026, 1, 4, 22)


def test_its_times_are_in_utc() -> None:
    after = Cron("0 6 * * *", tz="Asia/Shanghai").after(utc(2026, 1, 2))

    assert after is not None
    assert after.tzinfo is UTC


def test_a_sixth_field_is_the_second() -> None:
    assert Cron("30 2 * * * 15").after(utc(2026, 1, 1)) == utc(2026, 1, 1, 2, 30, 15)


@pytest.mark.parametrize(
    ("expression", "ours"),
    [
        ("0 0 12 * * ?", "'0 12 * * * 0'."),
        ("0 30 9 ? * MON-FRI", "'30 9 * * MON-FRI 0'."),
        ("0 0 0 * * SUN#1", "'0 0 * * SUN#1 0'."),
        ("0 0 12 1/5 * ? *", "'0 12 1/5 * * 0'."),
        ("0 45 9 ? * 2", "'45 9 * * 2 0'. Write the days of the week by name."),
    ],
)
def test_an_expression_with_its_seconds_first_is_refused_with_ours(
    expression: str, ours: str
) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        Cron(expression).after(utc(2026, 1, 1))
    assert str(caught.value).endswith(
        f". If its first field is the second, as Quartz, Spring and PowerJob write it, write it "
        f"last: {ours}"
    )


@pytest.mark.parametrize("expression", ["99 * * * * *", "0 15 10 ? * 6L 2002", "a b c d e f"])
def test_an_invalid_cron_expression_gets_no_hint_to_reorder_it(expression: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        Cron(expression).after(utc(2026, 1, 1))
    assert "write it last" not in str(caught.value)


def test_a_time_that_does_not_exist_is_due_once_at_the_first_moment_after_the_gap() -> None:
    rule = Cron("30 2 * * *", tz="Europe/Berlin")

    assert first(rule, 3, utc(2026, 3, 28)) == ["03-28 01:30", "03-29 01:00", "03-30 00:30"]


def test_times_that_fall_together_after_a_gap_are_one() -> None:
    rule = Cron("0,30 2,3 * * *", tz="Europe/Berlin")

    assert first(rule, 3, utc(2026, 3, 29)) == ["03-29 01:00", "03-29 01:30", "03-30 00:00"]


def test_a_time_that_exists_twice_is_due_once_at_its_first() -> None:
    rule = Cron("30 2 * * *", tz="Europe/Berlin")

    assert first(rule, 3, utc(2026, 10, 24)) == ["10-24 00:30", "10-25 00:30", "10-26 01:30"]


def test_within_the_second_half_of_a_fold_nothing_is_due_again() -> None:
    rule = Cron("30 2 * * *", tz="Europe/Berlin")

    assert rule.after(utc(2026, 10, 25, 1, 10)) == utc(2026, 10, 26, 1, 30)


def test_a_rule_of_every_hour_keeps_its_pace_through_a_gap_and_a_fold() -> None:
    rule = Cron("30 * * * *", tz="Europe/Berlin")

    for begin in (utc(2026, 3, 28), utc(2026, 10, 24)):
        times = list(rule.between(begin, begin + timedelta(days=3)))
        assert times == [begin + timedelta(hours=hour, minutes=30) for hour in range(72)]


def test_where_the_shift_is_half_an_hour_an_hourly_rule_counts_as_one_of_the_wall_clock() -> None:
    rule = Cron("0 * * * *", tz="Australia/Lord_Howe")

    assert first(rule, 3, utc(2026, 10, 3, 14)) == ["10-03 14:30", "10-03 15:30", "10-03 16:00"]


def test_where_the_shift_is_half_an_hour_a_half_hourly_rule_keeps_its_pace() -> None:
    rule = Cron("*/30 * * * *", tz="Australia/Lord_Howe")

    for begin in (utc(2026, 4, 4, 12), utc(2026, 10, 3, 12)):
        times = list(rule.between(begin, begin + timedelta(hours=12)))
        assert times == [begin + timedelta(minutes=30) * step for step in range(1, 25)]


def test_a_day_that_a_zone_left_out_is_made_up_for_once() -> None:
    rule = Cron("0 9 * * *", tz="Pacific/Apia")

    assert first(rule, 3, utc(2011, 12, 29, 12)) == ["12-29 19:00", "12-30 10:00", "12-30 19:00"]


@pytest.mark.parametrize("expression", ["0 4 1 * mon#2", "0 4 1 * 1#2"])
def test_days_of_month_and_nth_days_of_week_combine_by_either_too(expression: str) -> None:
    assert first(Cron(expression), 3, utc(2026, 4, 1, 5)) == [
        "04-13 04:00",
        "05-01 04:00",
        "05-11 04:00",
    ]


@pytest.mark.parametrize("week", ["0-7", "sun-7", "sun-sat", "mon-sun", "1-7", "1-0", "*"])
def test_sunday_begins_the_week_or_ends_it(week: str) -> None:
    assert len(list(Cron(f"0 0 * * {week}").between(utc(2026, 1, 1), utc(2026, 1, 8)))) == 7


def test_a_leap_day_is_found_across_the_years() -> None:
    assert Cron("0 0 29 2 *").after(utc(2096, 3, 1)) == utc(2104, 2, 29)


def test_the_rarest_rule_is_no_rule_that_never_fires() -> None:
    Cron("0 0 * 2 mon#5", tz="Europe/Berlin").check()


def test_start_and_end_are_both_within() -> None:
    rule = Cron("0 0 * * *", start=utc(2026, 1, 2), end=utc(2026, 1, 4))

    assert first(rule, 9, utc(2025, 1, 1)) == ["01-02 00:00", "01-03 00:00", "01-04 00:00"]
    assert rule.after(utc(2026, 1, 4)) is None


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@Midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        (" 0  6\t* * 1-5 ", "0 6 * * 1-5"),
    ],
)
def test_short_forms_and_spaces_make_the_same_rule(short: str, long: str) -> None:
    Cron(short).check()
    assert Cron(short) == Cron(long)
    assert hash(Cron(short)) == hash(Cron(long))


def test_a_zone_may_be_an_object() -> None:
    assert Cron("0 6 * * *", tz=ZoneInfo("Asia/Shanghai")) == Cron("0 6 * * *", "Asia/Shanghai")


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("0 0 30 2 *", "never"),
        ("0 0 31 4,6 *", "never"),
        ("", "empty"),
        ("   ", "empty"),
        ("* * * *", "has 4 fields"),
        ("6", "has 1 field."),
        ("0 0 1 1 * 0 2027", "Years are not supported"),
        ("@reboot", "no time"),
        ("@dayly", "Did you mean '@daily'"),
        ("@every 5m", "no short form"),
        ("H * * * *", "draws a time at random"),
        ("H(0-5) * * * *", "draws a time at random"),
        ("R * * * *", "draws a time at random"),
        ("r(0-5)/2 * * * *", "draws a time at random"),
        ("60 * * * *", "the minute cannot be '60'"),
        ("* 24 * * *", "the hour cannot be '24'"),
        ("* * 0 * *", "the day of the month cannot be '0'"),
        ("*/0 * * * *", r"the minute cannot be '\*/0'"),
        ("-5 * * * *", "the minute cannot be '-5'"),
        ("* * * foo *", "not a cron expression: the month cannot be 'foo'"),
        ("0 9-9 * * *", "range of one value"),
        ("0 9-09 * * *", "range of one value"),
        ("0 0 * * mon-1", "range of one value"),
        ("0 0 * * 7-sun", "range of one value"),
        ("0 0 * * 1#6", "not a cron expression"),
        ("0 0 * * 1,2#2", "not a cron expression"),
        ("0 0 ٣ * *", "characters"),
        ("0 0 * *\u00a0* *", "characters"),
        ("0 0 * * *\x00", "characters"),
        ("0," * 600 + "0 * * * *", "longer than"),
    ],
)
def test_a_wrong_expression_is_refused(expression: str, says: str) -> None:
    with pytest.raises(InvalidSchedule, match=says):
        Cron(expression).check()


@pytest.mark.parametrize("value", [None, 5, b"0 0 * * *", ["0 0 * * *"], True])
def test_an_expression_that_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(InvalidSchedule, match="must be text"):
        Cron(value).check()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("zone", "says"),
    [
        ("Europe/Berlim", "Did you mean 'Europe/Berlin'"),
        ("europe/berlin", "Did you mean 'Europe/Berlin'"),
        ("Berlin", "Did you mean 'Europe/Berlin'"),
        ("Europe", "no time zone is named"),
        ("", "not the name of a zone"),
        ("+02:00", "fixed offset"),
        ("UTC+2", "fixed offset"),
        ("localtime", "not the name of a zone"),
        ("/etc/localtime", "not the name of a zone"),
        ("../UTC", "not the name of a zone"),
        ("posix/Europe/Berlin", "not the name of a zone"),
        ("UTC\x00", "not the name of a zone"),
        (UTC, "must be the name of a zone"),
        (None, "must be the name of a zone"),
        (2, "must be the name of a zone"),
    ],
)
def test_a_wrong_zone_is_refused(zone: object, says: str) -> None:
    with pytest.raises(InvalidSchedule, match=says):
        Cron("0 0 * * *", tz=zone).check()


def test_everything_of_a_wrong_rule_raises_what_check_raises() -> None:
    rule = Cron("0 0 30 2 *")

    for use in (
        lambda: rule.after(utc(2026, 1, 1)),
        lambda: rule.between(utc(2026, 1, 1), FOREVER),
        lambda: rule.text,
        rule.as_json,
    ):
        with pytest.raises(InvalidSchedule, match="never"):
            use()


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Cron("0 6 * * 1-5", "Asia/Shanghai"), "At 06:00, Monday through Friday (Asia/Shanghai)"),
        (Cron("*/5 * * * *"), "Every 5 minutes (UTC)"),
        (Cron("30 2 * * * 15"), "At 02:30:15 (UTC)"),
        (Cron("0 0 1 * MON"), "At 00:00, on day 1 of the month, or on Monday (UTC)"),
        (Cron("0 0 * * l5"), "At 00:00, on the last Friday of the month (UTC)"),
        (Cron("0 0 1 * 1#2"), "0 0 1 * 1#2 (UTC)"),
        (Cron("0 0 * * mon#1,fri#3"), "0 0 * * mon#1,fri#3 (UTC)"),
        (Cron("0 0 15,L * *"), "0 0 15,L * * (UTC)"),
        (
            Cron("0 6 * * *", start=utc(2026, 1, 1), end=utc(2026, 12, 31)),
            "At 06:00 (UTC), from 2026-01-01 00:00:00 UTC until 2026-12-31 00:00:00 UTC",
        ),
    ],
)
def test_it_says_in_words_when_it_is_due(rule: Cron, text: str) -> None:
    assert rule.text == text
