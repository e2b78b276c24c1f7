"""Cron expressions that croniter takes for something else than is written, and junk."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice, pairwise
from typing import Any

import croniter
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules import Cron, from_json

MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
FOREVER = datetime.max.replace(tzinfo=UTC)

characters = st.text(" *,/-0123456789LWlw#?", max_size=12)
# Mostly what some field takes: of junk alone hardly anything gets as far as croniter.
common = st.sampled_from(["*", "?", "5", "1-3", "*/2", "3/2", "L", "mon", "mon#1", "L5", "15W"])
names = st.sampled_from(["SUN", "sat", "jan", "Dec", "L", "w1", "*", "h", "r"])
numbers = st.integers(0, 12).map(str) | st.integers(0, 100).map(str)
values = names | numbers
spans = values | st.builds("{}-{}".format, values, values)
odd = st.one_of(
    spans,
    st.builds("{}/{}".format, spans, numbers),
    st.builds("{}#{}".format, spans, st.integers(0, 7)),
    st.builds("L{}".format, st.integers(0, 8)),
    st.text("*,/-0123456789LW#?", min_size=1, max_size=5),
)
lists = st.lists(common | odd, min_size=1, max_size=3).map(",".join)
one_junk = st.builds(
    lambda field, place, count: " ".join(
        (["0"] * place + [field] + ["*"] * (5 - place))[: max(count, place + 1)]
    ),
    lists,
    st.integers(0, 5),
    st.sampled_from([5, 6]),
)
all_junk = st.lists(lists, min_size=5, max_size=6).map(" ".join)


@pytest.mark.slow
@settings(max_examples=1000)
@given(one_junk | all_junk | characters)
@example("*,5 * * * *")
@example("* *,1 * * *")
@example("* * * * * */2,*")
@example("0 0 * * 7-7")
def test_text_of_cron_is_a_rule_or_an_invalid_schedule(expression: str) -> None:
    rule = Cron(expression)
    try:
        rule.check()
    except InvalidSchedule:
        return
    times = [MOMENT, *islice(rule.between(MOMENT, FOREVER), 3)]

    assert all(earlier < later for earlier, later in pairwise(times))
    assert rule.text
    assert from_json(rule.as_json()) == rule


@pytest.mark.parametrize("error", [TypeError("no"), KeyError(), RecursionError(), OSError("no")])
def test_whatever_croniter_raises_is_an_invalid_schedule(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(croniter.croniter, "expand", fail)
    rule = Cron("1 2 3 4 1")

    with pytest.raises(InvalidSchedule, match="not a cron expression"):
        rule.check()


def test_values_that_are_no_numbers_are_an_invalid_schedule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        croniter.croniter, "expand", lambda *_, **__: ([[1, "*"], [2], [3], [4], [1]], {})
    )
    rule = Cron("1 2 3 4 2")

    with pytest.raises(InvalidSchedule, match="is not a cron expression"):
        rule.check()


@pytest.mark.parametrize("field", ["*,5", "5,*", "*,*", "*/2,*", "1-3,*,5"])
@pytest.mark.parametrize("place", range(6))
def test_every_value_is_refused_in_a_list(field: str, place: int) -> None:
    fields = ["*"] * 6
    fields[place] = field

    with pytest.raises(InvalidSchedule, match=r"in the list .* Write '\*' alone"):
        Cron(" ".join(fields)).check()


@pytest.mark.parametrize(
    "expression",
    ["0 0 * * *,mon#1", "0 0 * * mon#1,*", "0 0 L,* * *", "0 0 ?,1 * *", "0 0 * * 1,?"],
)
def test_every_day_is_refused_beside_a_special_one(expression: str) -> None:
    with pytest.raises(InvalidSchedule, match="in the list"):
        Cron(expression).check()


@pytest.mark.parametrize(
    ("expression", "remedy"),
    [
        ("*/60 * * * *", r"Every\(minutes=60\)"),
        ("*/90 * * * *", r"Every\(minutes=90\)"),
        ("5/90 * * * *", r"Every\(minutes=90\)"),
        ("1,10-50/060 * * * *", r"Every\(minutes=60\)"),
        ("0 */24 * * *", r"Every\(hours=24\)"),
        ("0 */25 * * *", r"Every\(hours=25\)"),
        ("0 0 */31 * *", r"Every\(days=31\)"),
        ("0 0 */40 * *", r"Every\(days=40\)"),
        ("0 0 1 */13 *", "Write the months"),
        ("0 0 * * */8", r"Every\(days=8\)"),
        ("0 0 * * mon-fri/14", r"Every\(days=14\)"),
        ("* * * * * */75", r"Every\(seconds=75\)"),
    ],
)
def test_a_step_that_its_field_cannot_hold_is_refused_with_another_way(
    expression: str, remedy: str
) -> None:
    with pytest.raises(InvalidSchedule, match=f"cannot hold .*{remedy}"):
        Cron(expression).check()


@pytest.mark.parametrize(
    "expression",
    ["*/59 * * * *", "0 */23 * * *", "0 0 */30 * *", "0 0 1 */12 *", "0 0 * * */7",
     "* * * * * */59"],
)  # fmt: skip
def test_the_largest_step_of_a_field_is_taken(expression: str) -> None:
    Cron(expression).check()


@pytest.mark.parametrize(
    "expression",
    ["0 0 * * sat-mon/2", "0 0 * * 6-1/2", "22-2/3 * * * *", "0 22-4/2 * * *", "0 0 1 nov-feb/2 *"],
)
def test_a_step_over_a_range_past_the_end_is_refused(expression: str) -> None:
    with pytest.raises(InvalidSchedule, match="past the end"):
        Cron(expression).check()


@pytest.mark.parametrize(
    ("week", "days"),
    [("1-7/2", "Sun Mon Wed Fri"), ("fri-sun/2", "Sun Fri"), ("7-3/2", "Sun Tue"),
     ("mon,wed-fri/2", "Mon Wed Fri"), ("2-7/3", "Tue Fri")],
)  # fmt: skip
def test_a_step_over_a_range_of_days_may_begin_or_end_with_sunday(week: str, days: str) -> None:
    times = Cron(f"0 0 * * {week}").between(MOMENT, datetime(2026, 11, 28, tzinfo=UTC))

    assert " ".join(f"{time:%a}" for time in times) == days


def test_a_range_from_sunday_to_itself_is_refused() -> None:
    for week in ("7-7", "0-0", "7-0", "sun-sun", "7-sun"):
        with pytest.raises(InvalidSchedule, match="range of one value"):
            Cron(f"0 0 * * {week}").check()
