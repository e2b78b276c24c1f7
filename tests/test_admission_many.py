"""Many calls at once that a debounce, a throttle or a capacity may turn away, and their counts."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.models import Sum
from django.test.utils import CaptureQueriesContext

from taskqueue import Capacity, CapacityReached, Concurrency, Debounce, Throttle
from taskqueue.engine.sums import merge_counts
from taskqueue.models import CallCount, Task
from tests.engine.steps import task_of
from tests.monitoring.metrics.scraping import scrape, value
from tests.sample.tasks import echo

pytestmark = pytest.mark.django_db
index = echo.using(debounce=Debounce(60, key="doc"))
remind = echo.using(throttle=Throttle("2/h", key="user"))


def counted() -> dict[str, int]:
    rows = CallCount.objects.filter(name=echo.name).values_list("what")
    return dict(rows.annotate(number=Sum("number")).order_by())


def statements(definition: Any, calls: list[Any]) -> int:
    with CaptureQueriesContext(connection) as queries:
        definition.enqueue_many(calls)
    return len(queries)


def test_of_many_debounced_calls_the_last_of_each_key_counts() -> None:
    calls = [((), {"doc": number % 3, "version": number}) for number in range(9)]
    results = index.enqueue_many(calls)
    assert [result.created for result in results] == [True] * 3 + [False] * 6
    assert [result.updated for result in results] == [False] * 3 + [True] * 6
    assert len({result.id for result in results}) == Task.objects.count() == 3
    kept = Task.objects.order_by("unique_key").values_list("kwargs", "status")
    assert list(kept) == [({"doc": n, "version": 6 + n}, "scheduled") for n in range(3)]
    assert counted() == {"debounced": 6}


def test_many_debounced_calls_put_off_what_waits() -> None:
    first = index.enqueue(doc=1, version=0)
    before = task_of(first)
    results = index.enqueue_many([((), {"doc": 1, "version": n}) for n in (1, 2)])
    assert [(each.id, each.created, each.updated) for each in results] == [
        (first.id, False, True)
    ] * 2  # fmt: skip
    after = task_of(first)
    assert after.kwargs == {"doc": 1, "version": 2}
    assert after.run_after > before.run_after
    assert counted() == {"debounced": 2}


@pytest.mark.parametrize(
    "definition",
    [
        index,
        remind.using(throttle=Throttle("2/h", key="doc")),
        echo.using(capacity=Capacity(2, key="doc", when_full="drop")),
    ],
    ids=["debounce", "throttle", "capacity"],
)
def test_many_calls_with_keys_take_as_many_statements_as_few(definition: Any) -> None:
    few = statements(definition, [((), {"doc": number}) for number in range(5)])
    many = statements(definition, [((), {"doc": number}) for number in range(10, 210)])
    assert many == few


def test_of_many_throttled_calls_the_first_of_each_key_are_let_in() -> None:
    remind.enqueue(user=1, number=-1)
    results = remind.enqueue_many([((), {"user": n % 2, "number": n}) for n in range(8)])
    assert [result.created for result in results] == [True, True, True, *[False] * 5]
    assert sorted(Task.objects.values_list("unique_key", flat=True)) == [
        "throttle:0#0", "throttle:0#1", "throttle:1#0", "throttle:1#1"
    ]  # fmt: skip
    assert {result.id for result in results[4::2]} <= {results[0].id, results[2].id}
    assert counted() == {"throttled": 5}


def test_many_calls_beyond_a_capacity_are_dropped_refused_or_replace_what_waits() -> None:
    calls = [((), {"number": number}) for number in range(4)]
    dropping = echo.using(capacity=Capacity(3, when_full="drop"), queue_name="a")
    assert [each.created for each in dropping.enqueue_many(calls)] == [True] * 3 + [False]
    Task.objects.all().delete()
    refusing = echo.using(capacity=Capacity(3))
    with pytest.raises(CapacityReached):
        refusing.enqueue_many(calls)
    assert not Task.objects.exists(), "All or none."
    refusing.enqueue_many(calls[:3])
    with pytest.raises(CapacityReached):
        refusing.enqueue(number=9)
    Task.objects.all().delete()
    replacing = echo.using(capacity=Capacity(3, when_full="replace"))
    assert all(each.created for each in replacing.enqueue_many(calls))
    waiting = Task.objects.filter(status="ready").order_by("id")
    assert [task.kwargs["number"] for task in waiting] == [1, 2, 3]
    # That of the refused enqueue of many was rolled back with it.
    assert counted() == {"dropped": 1, "refused": 1, "replaced": 1}


def test_many_calls_may_have_limits_too_and_some_no_key() -> None:
    limited = echo.using(
        throttle=Throttle("1/h", key=lambda user: user), concurrency=Concurrency(1, key="user")
    )
    users = ["a", None, "a", "b", None]
    results = limited.enqueue_many([((), {"user": user}) for user in users])
    assert [result.created for result in results] == [True, True, False, True, True]
    assert Task.objects.filter(partition=None).count() == 0


def test_calls_that_were_turned_away_are_a_metric() -> None:
    for _ in range(3):
        remind.enqueue_many([((), {"user": 1})] * 3)
        merge_counts(connection)
    remind.enqueue_many([((), {"user": 1})] * 3)
    labels = {"name": echo.name, "outcome": "throttled"}
    assert value(scrape(), "calls_turned_away_total", **labels) == 10
    assert CallCount.objects.filter(is_sum=True).count() == 1
