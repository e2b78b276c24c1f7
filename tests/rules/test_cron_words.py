"""Cron expressions in words: what is said is what is due."""

from __future__ import annotations

import pytest

from taskqueue.rules import Cron


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("*/15 * * * *", "Every 15 minutes"),
        ("*/40 * * * *", "At 0 and 40 minutes past the hour"),
        ("*/7 * * * *", "Every 7 minutes, minutes 0 through 56 past the hour"),
        ("5/20 * * * *", "Every 20 minutes, starting at 5 minutes past the hour"),
        ("50/3 * * * *", "At 50, 53, 56, and 59 minutes past the hour"),
        ("59/2 * * * *", "At 59 minutes past the hour"),
        ("50-51/15 * * * *", "At 50 minutes past the hour"),
        ("10-40/10 * * * *", "Every 10 minutes, minutes 10 through 40 past the hour"),
        ("5-10,20/15 * * * *", "At 5 through 10, 20, 35, and 50 minutes past the hour"),
        ("0-59 * * * *", "Every minute"),
        ("* * * * * */40", "At 0 and 40 seconds past the minute"),
        ("0 */6 * * *", "Every 6 hours"),
        ("0 */7 * * *", "At 00:00, 07:00, 14:00 and 21:00"),
        ("0 9-17/2 * * *", "Every 2 hours, between 09:00 and 17:59"),
        ("*/15 9-17 * * *", "Every 15 minutes, between 09:00 and 17:59"),
    ],
)
def test_a_step_is_a_pace_only_where_it_keeps_it(expression: str, words: str) -> None:
    assert Cron(expression).text == f"{words} (UTC)"


@pytest.mark.parametrize(
    ("days", "words"),
    [
        ("*/30 * *", "on day 1 and 31 of the month"),
        ("*/2 * *", "every 2 days, between day 1 and 31 of the month"),
        ("10-L * *", "between day 10 and 31 of the month"),
        ("29,30/2 * *", "on day 29 and 30 of the month"),
        ("* */3 *", "every 3 months"),
        ("* */5 *", "only in January, June, and November"),
        ("* feb,mar/5 *", "only in February, March, and August"),
        ("* * */2", "only on Sunday, Tuesday, Thursday, and Saturday"),
        ("* * 1-5/2", "only on Monday, Wednesday, and Friday"),
        ("* * mon,wed-fri/2", "only on Monday, Wednesday, and Friday"),
        ("* * fri/2", "only on Friday"),
        ("* * 0,7", "only on Sunday"),
        ("* * 05", "only on Friday"),
        ("* * sat-mon", "Saturday through Monday"),
    ],
)
def test_days_are_named_as_they_are_due(days: str, words: str) -> None:
    assert Cron(f"0 0 {days}").text == f"At 00:00, {words} (UTC)"


@pytest.mark.parametrize(
    ("days", "words"),
    [
        ("1 * mon-wed", "on day 1 of the month, or on Monday, Tuesday, and Wednesday"),
        ("1 * 2/3", "on day 1 of the month, or on Tuesday and Friday"),
        ("L * 1-2", "on the last day of the month, or on Monday and Tuesday"),
        ("15W * mon", "on the weekday nearest day 15 of the month, or on Monday"),
        ("*/1 * mon", "between day 1 and 31 of the month, or on Monday"),
    ],
)
def test_where_either_day_will_do_the_words_say_or(days: str, words: str) -> None:
    assert Cron(f"0 0 {days}").text == f"At 00:00, {words} (UTC)"


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ("* 9,17", "Every minute, at 09:00 through 09:59 and 17:00 through 17:59"),
        ("0 9,17", "At 09:00 and 17:00"),
        ("0 9-11,20", "At 09:00, 10:00, 11:00 and 20:00"),
        ("0,30 9-10,20", "At 0 and 30 minutes past the hour, at 09:00, 10:00, and 20:00"),
    ],
)
def test_a_list_of_hours_is_of_whole_hours_or_of_times(times: str, words: str) -> None:
    assert Cron(f"{times} * * *").text == f"{words} (UTC)"


@pytest.mark.parametrize(
    "expression",
    ["0 0 * * mon-wed#1", "0 0 * * L5,L1", "0 0 15,L * *", "0 0 1 * L5",
     "0 0 * * 0#1,1#1,2#1,3#1,4#1,5#1,6#1"],
)  # fmt: skip
def test_a_cron_expression_without_a_description_is_shown_as_written(expression: str) -> None:
    assert Cron(expression).text == f"{expression} (UTC)"
