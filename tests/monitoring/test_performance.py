"""How long tasks of each name take, and how many fail."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db.models import F

from taskqueue.models import Rollup
from taskqueue.monitoring import performance as module
from taskqueue.monitoring.performance import performance
from tests.monitoring.rows import HOUR, MINUTE, ago, make_rollup

pytestmark = pytest.mark.django_db


def test_rollups_of_one_name_are_put_together() -> None:
    slowest = uuid4()
    make_rollup(
        ago(MINUTE), succeeded=90, failed=4, run=[1.0] * 94, wait=[0.1] * 94, returned=7,
        slowest_seconds=2.0, slowest_task_id=uuid4(),
    )  # fmt: skip
    make_rollup(
        ago(5 * MINUTE), lost=4, stopped=2, run=[50.0] * 6, wait=[20.0] * 6, queue_name="web",
        resolution=60, slowest_seconds=60.0, slowest_task_id=slowest,
    )  # fmt: skip
    (found,) = performance("hour")
    assert (found.name, found.count, found.failed) == ("shop.tasks.send", 100, 8)
    assert found.failure_rate == 0.08
    assert found.run_p50 == pytest.approx(1.0, rel=0.2)
    assert found.run_p95 == pytest.approx(50.0, rel=0.2)
    assert found.wait_p50 == pytest.approx(0.1, rel=0.2)
    assert found.wait_p95 == pytest.approx(20.0, rel=0.2)
    assert (found.slowest_seconds, found.slowest_task_id) == (60.0, slowest)


def test_the_most_frequent_stand_first_and_the_span_is_kept_to() -> None:
    make_rollup(ago(MINUTE), name="rare", succeeded=1)
    make_rollup(ago(MINUTE), name="frequent", succeeded=9)
    make_rollup(ago(3 * HOUR), name="of today", succeeded=5)
    make_rollup(ago(timedelta(days=3)), name="of this week", succeeded=7)
    names = {span: [each.name for each in performance(span)] for span in ("hour", "day", "week")}
    assert names == {
        "hour": ["frequent", "rare"],
        "day": ["frequent", "of today", "rare"],
        "week": ["frequent", "of this week", "of today", "rare"],
    }


def test_a_name_that_was_only_handed_back_has_no_rate() -> None:
    make_rollup(ago(MINUTE), returned=3)
    assert performance("hour") == []


def test_attempts_that_were_lost_have_no_quantiles() -> None:
    make_rollup(ago(MINUTE), lost=1)
    (found,) = performance("hour")
    assert (found.failure_rate, found.run_p95, found.slowest_task_id) == (1.0, None, None)


def test_nothing_took_longer_than_the_slowest() -> None:
    make_rollup(
        ago(MINUTE), succeeded=3, run=[0.0001] * 3, slowest_seconds=0.0001, slowest_task_id=uuid4()
    )
    (found,) = performance("hour")
    assert (found.run_p50, found.run_p95) == (0.0001, 0.0001)


@pytest.mark.parametrize("span", ["hour", "day", "week"])
def test_rollups_of_the_past_are_read_once(span: str) -> None:
    make_rollup(ago(50 * MINUTE), name="a", succeeded=1, run=[1.0], slowest_seconds=1.0)
    lately = make_rollup(ago(MINUTE), name="a", succeeded=2, run=[1.0], slowest_seconds=3.0)
    assert [each.count for each in performance(span)] == [3]
    Rollup.objects.update(succeeded=F("succeeded") * 10)
    make_rollup(ago(MINUTE), name="b", succeeded=30)
    told = {each.name: (each.count, each.slowest_seconds) for each in performance(span)}
    assert told == {"a": (21, 3.0), "b": (30, 0.0)}
    lately.delete()
    assert [each.name for each in performance(span)] == ["b", "a"]


@pytest.mark.postgresql_only
@pytest.mark.parametrize("minutes", [-90, 90])
def test_the_databases_clock_counts(minutes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for age in (1, 55):
        make_rollup(ago(age * MINUTE), succeeded=1)
    here: Any = vars(module)["clock"]
    monkeypatch.setattr(module, "clock", lambda: here() + minutes * MINUTE)
    assert [each.count for each in performance("hour")] == [2]
    assert not module.cache._charts


def test_histograms_of_one_name_are_parsed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for minutes in range(10, 50):
        make_rollup(ago(minutes * MINUTE), succeeded=1, run=[1.0], wait=[0.1])
    parsed: list[str | None] = []
    summed = module.summed
    monkeypatch.setattr(module, "summed", lambda text: parsed.append(text) or summed(text))
    (found,) = performance("hour")
    assert (found.count, len(parsed)) == (40, 2)


def test_an_unknown_span_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a span"):
        performance("")
