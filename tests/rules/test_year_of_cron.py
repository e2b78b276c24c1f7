"""A year of cron in five zones, against times found the slow way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from taskqueue.rules import Cron
from tests.rules.expressions import EXPRESSIONS, SECOND_EXPRESSIONS, ZONES
from tests.rules.oracle import due_times, offsets, stamp

pytestmark = pytest.mark.slow

BEGIN, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
CHANGES = {
    "Europe/Berlin": (datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)),
    "America/New_York": (datetime(2026, 3, 8, 7, tzinfo=UTC), datetime(2026, 11, 1, 6, tzinfo=UTC)),
    "Australia/Lord_Howe": (
        datetime(2026, 4, 4, 15, tzinfo=UTC),
        datetime(2026, 10, 3, 15, 30, tzinfo=UTC),
    ),
}
AROUND = [(zone, change) for zone, changes in CHANGES.items() for change in changes]


IS_FULL = os.environ.get("TASKQUEUE_FULL") == "1"
"""Every expression in every zone; otherwise each has two, by turns, and one that comes every few
minutes the months in which clocks change."""
WHERE = [
    (expression, zone)
    for place, expression in enumerate(EXPRESSIONS)
    for number, zone in enumerate(ZONES)
    if IS_FULL or (place + number) % len(ZONES) < 2
]
WHOLE_YEAR = [(BEGIN, END)]
CHANGING_MONTHS = [
    (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 10, tzinfo=UTC)),
    (datetime(2026, 9, 25, tzinfo=UTC), datetime(2026, 11, 5, tzinfo=UTC)),
]


def spans_of(expression: str) -> list[tuple[datetime, datetime]]:
    is_frequent = expression.startswith("*") and expression.endswith(" * * * *")
    return CHANGING_MONTHS if is_frequent and not IS_FULL else WHOLE_YEAR


def rules_times(expression: str, zone: str, begin: datetime, end: datetime) -> Iterator[int]:
    return map(stamp, Cron(expression, tz=zone).between(begin, end))


@pytest.mark.parametrize(("expression", "zone"), WHERE)
def test_a_year_has_exactly_the_times_that_the_expression_says(expression: str, zone: str) -> None:
    for begin, end in spans_of(expression):
        times = list(rules_times(expression, zone, begin, end))
        assert times == due_times(expression, zone, begin, end)
        assert times


@pytest.mark.parametrize(("zone", "change"), AROUND)
@pytest.mark.parametrize("expression", SECOND_EXPRESSIONS)
def test_seconds_are_exact_around_changes_of_the_clock(
    expression: str, zone: str, change: datetime
) -> None:
    begin, end = change - timedelta(days=1), change + timedelta(days=1)

    times = list(rules_times(expression, zone, begin, end))

    assert times == due_times(expression, zone, begin, end)


@pytest.mark.parametrize(("zone", "change"), AROUND)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_next_time_is_the_same_from_wherever_one_asks(
    expression: str, zone: str, change: datetime
) -> None:
    rule = Cron(expression, tz=zone)
    begin, end = change - timedelta(hours=4), change + timedelta(hours=30)
    times = list(rule.between(begin, end))
    asked = [begin + timedelta(minutes=25) * step for step in range(24)]
    asked += [change + timedelta(seconds=second) for second in (-1, 0, 1)]

    for moment in asked:
        expected = next((time for time in times if time > moment), None)
        if expected is not None:
            assert rule.after(moment) == expected


@pytest.mark.parametrize("zone", CHANGES)
def test_the_year_holds_the_changes_that_the_tests_are_about(zone: str) -> None:
    first = datetime(2025, 12, 29, tzinfo=UTC)
    for change in CHANGES[zone]:
        minute = (change - first) // timedelta(minutes=1)
        assert offsets(zone)[minute - 1] != offsets(zone)[minute]


def test_there_are_at_least_fifty_expressions() -> None:
    assert len(set(EXPRESSIONS)) >= 50
