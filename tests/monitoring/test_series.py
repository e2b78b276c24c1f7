"""How much was done, and how long it took."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from taskqueue.models import Rollup
from taskqueue.monitoring import rollups
from taskqueue.monitoring import series as module
from taskqueue.monitoring.rollups import SPANS
from taskqueue.monitoring.series import Attempts, Series, series
from tests.monitoring.rows import HOUR, MINUTE, ago, make_rollup

pytestmark = pytest.mark.django_db


def step_at(found: Series, moment: datetime) -> Attempts:
    """The step of a moment."""
    step = timedelta(seconds=found.step_seconds)
    (place,) = [place for place, start in enumerate(found.starts) if start <= moment < start + step]
    return found.steps[place]


@pytest.mark.parametrize(
    ("span", "seconds", "steps"), [("hour", 60, 60), ("day", 900, 96), ("week", 7200, 84)]
)
def test_without_rollups_all_is_nought(span: str, seconds: int, steps: int) -> None:
    found = series(span)
    assert (found.span, found.step_seconds, len(found.starts)) == (span, seconds, steps)
    for attempts in (*found.steps, found.whole):
        assert attempts == Attempts()
        assert attempts.ended == 0
        assert (
            attempts.run_p50 is attempts.run_p95 is attempts.wait_p50 is attempts.wait_p95 is None
        )
    assert len(found.steps) == steps


@pytest.mark.parametrize("span", SPANS)
def test_the_last_step_is_the_one_that_is_not_over(span: str) -> None:
    found = series(span)
    step = timedelta(seconds=found.step_seconds)
    assert {after - start for start, after in pairwise(found.starts)} == {step}
    assert found.starts[-1] <= ago(timedelta(seconds=-1)) < found.starts[-1] + 2 * step
    assert all(start.timestamp() % found.step_seconds == 0 for start in found.starts)


@pytest.mark.parametrize("span", SPANS)
def test_rollups_of_whatever_resolution_are_summed_by_step(span: str) -> None:
    moment = series(span).starts[-3]
    module.cache.forget()
    for resolution, inside in [(0, 0), (0, 59), (60, 0), (900, 0)]:
        make_rollup(
            moment + timedelta(seconds=inside), resolution=resolution, succeeded=10, failed=3,
            lost=2, stopped=1, returned=50,
        )  # fmt: skip
    make_rollup(moment - timedelta(microseconds=1), succeeded=1000)
    found = series(span)
    assert step_at(found, moment)[:4] == (40, 12, 8, 4)
    assert (found.whole.succeeded, found.whole.ended) == (1040, 1064)


def test_rollups_before_the_first_step_are_left_out() -> None:
    first = series("hour").starts[0]
    make_rollup(first - timedelta(seconds=1), succeeded=1)
    assert series("hour").whole.ended == 0


def test_quantiles_are_those_of_the_histograms_together() -> None:
    moment = ago(10 * MINUTE)
    make_rollup(moment, run=[1.0] * 60, wait=[0.01] * 10)
    make_rollup(moment, run=[1.0] * 34, wait=[0.01] * 9, queue_name="web")
    make_rollup(moment, run=[100.0] * 6, wait=[10.0], name="shop.tasks.pack")
    make_rollup(moment - HOUR / 2, run=[1000.0] * 100)
    found = series("hour")
    tenth = pytest.approx
    step = next(step for step in reversed(found.steps) if step.run_p50)
    assert step.run_p50 == tenth(1.0, rel=0.2)
    assert step.run_p95 == tenth(100.0, rel=0.2)
    assert step.wait_p50 == tenth(0.01, rel=0.2)
    assert step.wait_p95 == tenth(0.01, rel=0.2)
    assert found.whole.run_p95 == tenth(1000.0, rel=0.2)
    assert found.whole.wait_p50 == tenth(0.01, rel=0.2)


def test_one_queue_or_one_name_can_be_looked_at_alone() -> None:
    moment = ago(10 * MINUTE)
    make_rollup(moment, succeeded=1)
    make_rollup(moment, succeeded=2, queue_name="web")
    make_rollup(moment, succeeded=4, queue_name="web", name="shop.tasks.pack")
    assert series("hour", queue_name="web").whole.ended == 6
    assert series("hour", name="shop.tasks.pack").whole.ended == 4
    assert series("hour", queue_name="default", name="shop.tasks.pack").whole.ended == 0
    assert series("hour", queue_name="'; --").whole.ended == 0


def test_an_unknown_span_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"'year' is not a span\. Choose from hour, day, week"):
        series("year")


def test_the_first_step_holds_what_begins_with_it() -> None:
    moment = series("hour").starts[0] + MINUTE  # The first may pass meanwhile.
    make_rollup(moment, succeeded=3)
    make_rollup(moment - MINUTE, succeeded=1, name="a second before")
    module.cache.forget()
    found = series("hour")
    assert found.whole.ended == (4 if found.starts[0] < moment else 3)


@pytest.mark.parametrize("age", range(8))
def test_a_rollup_at_the_start_of_a_step_is_counted_at_each_reading(age: int) -> None:
    make_rollup(series("hour").starts[-1 - age], resolution=60, succeeded=3)
    module.cache.forget()
    assert [series("hour").whole.ended for _ in range(3)] == [3, 3, 3]


# What a process remembers of steps that are over


def test_steps_that_are_long_over_are_not_read_again() -> None:
    old, lately = make_rollup(ago(20 * MINUTE), succeeded=1), make_rollup(ago(MINUTE), succeeded=1)
    assert series("hour").whole.ended == 2
    Rollup.objects.filter(id__in=[old.id, lately.id]).update(succeeded=10)
    make_rollup(ago(30 * MINUTE), succeeded=100)
    assert series("hour").whole.ended == 11
    assert series("hour", queue_name=old.queue_name).whole.ended == 120


def test_only_the_latest_steps_are_read_again() -> None:
    series("day")
    with CaptureQueriesContext(connection) as sent:
        found = series("day")
    (query,) = sent.captured_queries
    lately = [f"{start:%Y-%m-%d %H:%M}" for start in found.starts[-3:]]
    assert any(start in query["sql"] for start in lately)
    assert f"{found.starts[0]:%Y-%m-%d %H:%M}" not in query["sql"]


def test_of_a_step_of_hours_only_the_last_quarters_are_read_again() -> None:
    early, lately = ago(45 * MINUTE), ago(MINUTE)
    for moment in (early, lately):
        make_rollup(moment, succeeded=1)
    assert series("week").whole.ended == 2
    Rollup.objects.update(succeeded=10)
    assert series("week").whole.ended == 11


def test_all_is_read_anew_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    old = make_rollup(ago(20 * MINUTE), succeeded=1)
    assert series("hour").whole.ended == 1
    Rollup.objects.filter(id=old.id).update(succeeded=10)
    assert series("hour").whole.ended == 1
    monkeypatch.setattr(rollups, "FORGOTTEN_AFTER", 0.0)
    assert series("hour").whole.ended == 10


@pytest.mark.postgresql_only
@pytest.mark.parametrize("minutes", [-90, -1, 1, 90])
@pytest.mark.parametrize("is_known", [False, True])
def test_the_databases_clock_counts(
    minutes: int, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite there is but one, that of the process."""
    for age in (1, 7, 20, 55):
        make_rollup(ago(age * MINUTE), succeeded=1)
    if is_known:
        series("hour")
    here = module.clock
    monkeypatch.setattr(module, "clock", lambda: here() + minutes * MINUTE)
    assert series("hour").whole.ended == 4


def test_only_so_many_charts_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollups, "MOST_CHARTS", 3)
    for number in range(10):
        series("hour", name=f"name {number}")
        assert len(module.cache._charts) <= 3


def test_a_chart_forgotten_by_another_thread_is_not_kept_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    series("hour")
    first = dict(module.cache._charts)
    read = module._read

    def forget_and_read(*given: Any) -> Any:
        module.cache.forget()
        return read(*given)

    monkeypatch.setattr(module, "_read", forget_and_read)
    series("hour")
    assert {chart: read_at for chart, (read_at, _) in module.cache._charts.items()} == {
        chart: read_at for chart, (read_at, _) in first.items()
    }
