"""What holds for every rule: order, agreement, a way to JSON and back, clear errors."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules import AfterEnd, Cron, DailyWindow, Every, Once, Rule, from_json
from tests.rules.expressions import EXPRESSIONS, SECOND_EXPRESSIONS, ZONES

FOREVER = datetime.max.replace(tzinfo=UTC)
UNUSUAL_ZONES = ("Pacific/Apia", "Africa/Casablanca", "America/Havana", "Asia/Beirut")

moments = st.datetimes(datetime(2005, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))
limits = st.none() | moments
zones = st.sampled_from(ZONES + UNUSUAL_ZONES)
seconds = st.integers(1, 90_000) | st.floats(1, 86_400)
clock_times = st.times().map(lambda at: at.replace(microsecond=0))
days = st.lists(st.sampled_from(["mon", "tue", "wed", "thu", "fri", "sat", "sun"]), min_size=1)


def limited(kind: Any, *values: Any, **named: Any) -> st.SearchStrategy[Rule]:
    either = st.builds(kind, *values, **named, start=limits) | st.builds(
        kind, *values, **named, end=limits
    )
    return either


rules = st.one_of(
    limited(Cron, st.sampled_from(EXPRESSIONS + SECOND_EXPRESSIONS), zones),
    limited(Every, seconds),
    limited(AfterEnd, seconds),
    limited(
        DailyWindow,
        clock_times,
        clock_times,
        every=st.integers(1, 86_400) | st.sampled_from([900, 1800, 3600]),
        days=days,
        tz=zones,
    ),
    st.builds(Once, moments),
)
texts = st.sampled_from(["0 0 30 2 *", "09:00", "mon", "UTC", "localtime"]) | st.text()
junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    texts,
    st.binary(),
    st.dates(),
    st.datetimes(timezones=st.none() | st.timezones()),
    st.times(timezones=st.none() | st.timezones()),
    st.timedeltas(),
    st.lists(texts),
    st.sampled_from([10**400, object(), UTC, Cron, "9" * 5000]),
)


@given(rules, moments)
def test_times_strictly_increase_and_lie_after_the_moment(rule: Rule, moment: datetime) -> None:
    times = [moment, *islice(rule.between(moment, FOREVER), 50)]

    assert all(earlier < later for earlier, later in pairwise(times))


@given(rules, moments)
def test_asking_again_and_again_gives_what_between_gives(rule: Rule, moment: datetime) -> None:
    times, asked = list(islice(rule.between(moment, FOREVER), 12)), moment

    for time in times:
        following = rule.after(asked)
        assert following == time
        asked = following
    if len(times) < 12:
        assert rule.after(asked) is None


@given(rules, moments, st.timedeltas(timedelta(0), timedelta(days=3)))
def test_between_ends_with_its_until_included(
    rule: Rule, moment: datetime, span: timedelta
) -> None:
    times = list(islice(rule.between(moment, moment + span), 100))

    assert all(moment < time <= moment + span for time in times)
    if times:
        assert list(islice(rule.between(moment, times[-1]), 101)) == times


@given(rules)
def test_json_and_back_is_the_same_rule(rule: Rule) -> None:
    again = from_json(json.loads(json.dumps(rule.as_json())))

    assert again == rule
    assert hash(again) == hash(rule)
    assert again.as_json() == rule.as_json()
    assert again.text == rule.text


@given(rules)
def test_a_rule_can_be_pickled(rule: Rule) -> None:
    assert pickle.loads(pickle.dumps(rule)) == rule


@pytest.mark.slow
@given(st.data())
def test_junk_is_refused_with_nothing_but_an_invalid_schedule(data: st.DataObject) -> None:
    names: dict[Any, list[str]] = {
        Cron: ["expression", "tz", "start", "end"],
        Every: ["interval", "minutes", "weeks", "start", "end"],
        AfterEnd: ["interval", "seconds", "start", "end"],
        DailyWindow: ["first", "last", "every", "days", "tz", "start", "end"],
        Once: ["at"],
    }
    kind = data.draw(st.sampled_from(list(names)))
    rule = kind(**{name: data.draw(junk, label=name) for name in names[kind]})
    try:
        rule.check()
    except InvalidSchedule:
        pass


@given(junk | st.dictionaries(st.text(max_size=9), junk, max_size=4))
def test_stored_junk_is_refused_with_nothing_but_an_invalid_schedule(value: Any) -> None:
    with pytest.raises(InvalidSchedule):
        from_json(value)
    for kind, key in (("cron", "expression"), ("every", "interval"), ("once", "at")):
        try:
            from_json({"kind": kind, key: value}).check()
        except InvalidSchedule:
            pass


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        ([], "JSON object"),
        ({}, "kind"),
        ({"kind": "corn", "expression": "0 0 * * *"}, "Did you mean 'cron'"),
        ({"kind": ["cron"]}, "There is no kind of rule"),
        ({"kind": "cron"}, "needs expression"),
        ({"kind": "cron", "expression": "0 0 * * *", "zone": "UTC"}, "has no 'zone'"),
        ({"kind": "cron", "expression": "0 0 * * *", "stat": None}, "Did you mean 'start'"),
        ({"kind": "cron", "expression": 5}, "expression must be text"),
        ({"kind": "cron", "expression": "0 0 * * *", "tz": None}, "tz must be text"),
        ({"kind": "every", "interval": "60"}, "interval must be a number"),
        ({"kind": "every", "interval": True}, "interval must be a number"),
        ({"kind": "once", "at": "tomorrow"}, "at must be a datetime"),
        ({"kind": "once", "at": None}, "at must be text"),
        ({"kind": "once", "at": "2026-01-01T00:00:00+00:00", "end": None}, "has no 'end'"),
        ({"kind": "every", "seconds": 5}, r"no 'seconds'\. Give its interval in seconds\.$"),
        ({"kind": "after_end", "minutes": 5}, r"no 'minutes'\. Give its interval in seconds\.$"),
        ({"kind": "every", "intervall": 5}, r"Did you mean 'interval'\?$"),
        ({"kind": "once", "seconds": 5}, r"no 'seconds'\. It has at"),
        (
            {"kind": "daily_window", "first": "09:00", "last": "10:00", "every": 1, "days": [1]},
            "days must be names",
        ),
    ],
)
def test_stored_values_of_no_rule_are_refused(stored: Any, says: str) -> None:
    with pytest.raises(InvalidSchedule, match=says):
        from_json(stored)


def test_omitted_stored_values_take_their_defaults() -> None:
    assert from_json({"kind": "cron", "expression": "0 6 * * *"}) == Cron("0 6 * * *")


def test_a_stored_rule_holds_plain_values_alone() -> None:
    rule = DailyWindow(
        "09:00", "17:30", every=1800, days="mon,tue", tz="Europe/Berlin",
        start=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip

    assert rule.as_json() == {
        "kind": "daily_window",
        "first": "09:00:00",
        "last": "17:30:00",
        "every": 1800,
        "days": ["mon", "tue"],
        "tz": "Europe/Berlin",
        "start": "2026-01-01T00:00:00+00:00",
        "end": None,
    }


def test_only_a_rule_after_the_end_waits_for_one() -> None:
    waiting = [kind for kind in (Cron, Every, AfterEnd, DailyWindow, Once) if kind.waits_for_end]

    assert waiting == [AfterEnd]


def test_a_rule_cannot_be_changed() -> None:
    rule = Every(60)

    with pytest.raises(AttributeError):
        rule.interval = timedelta(5)  # type: ignore[misc]
