"""Throttle: so many tasks in any window of a time; further calls are dropped."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taskqueue import InvalidTask, Throttle
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.rates import rate_of
from taskqueue.models import Task
from taskqueue.monitoring.why import why
from tests.engine.steps import claim_one, end, past, task_of
from tests.sample.tasks import echo

pytestmark = pytest.mark.django_db
remind = echo.using(throttle=Throttle("1/h", key="user"))
SECOND = timedelta(seconds=1)


def test_the_first_call_runs_and_further_ones_are_dropped_for_the_time() -> None:
    first = remind.enqueue(user=1)
    row = task_of(first)
    assert (first.created, row.status, row.unique_key) == (True, "ready", "throttle:1#0")
    assert row.unique_until == row.enqueued_at + timedelta(hours=1)
    assert remind.enqueue(user=2).created

    second = remind.enqueue(user=1, again=True)
    assert (second.id, second.created, second.updated) == (first.id, False, False)
    assert Task.objects.count() == 2


def test_a_task_that_has_ended_counts_until_its_time_is_over() -> None:
    first = remind.enqueue(user=1)
    end(claim_one(), OutcomeKind.SUCCEEDED)
    assert remind.enqueue(user=1).id == first.id
    row = task_of(first)
    assert row.prune_after >= row.unique_until, "Else it would be forgotten too early."
    Task.objects.filter(id=first.id).update(unique_until=past())
    second = remind.enqueue(user=1)
    assert second.created
    assert not task_of(first).holds_unique_key


def test_every_window_has_at_most_as_many_wherever_it_begins() -> None:
    thrice = echo.using(throttle=Throttle("3/10m"))
    results = [thrice.enqueue(number) for number in range(5)]
    assert [result.created for result in results] == [True] * 3 + [False] * 2
    assert {results[3].id, results[4].id} == {results[2].id}
    oldest = task_of(results[0])
    Task.objects.filter(id=oldest.id).update(unique_until=past())
    assert thrice.enqueue(5).created
    assert not thrice.enqueue(6).created


def test_many_calls_at_once_are_let_in_in_their_order() -> None:
    twice = echo.using(throttle=Throttle("2/h"))
    results = twice.enqueue_many([((number,), {}) for number in range(50)])
    assert [result.created for result in results] == [True] * 2 + [False] * 48
    assert sorted(row.args for row in Task.objects.all()) == [[0], [1]]


def test_a_rate_that_is_raised_counts_what_was_let_in_before() -> None:
    remind.enqueue(user=1)
    more = echo.using(throttle=Throttle("3/h", key="user"))
    created = [more.enqueue(user=1).created for _ in range(3)]
    assert created == [True, True, False]


def test_why_says_until_when_it_keeps_others_out() -> None:
    remind.enqueue(user=1)
    end(claim_one(), OutcomeKind.SUCCEEDED)
    codes = [reason.code for reason in why(Task.objects.get())]
    assert codes == ["succeeded", "key_held"]
    Task.objects.update(unique_until=timezone.now() - SECOND)
    assert [reason.code for reason in why(Task.objects.get())] == ["succeeded"]


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100/m", (100, 60)),
        ("5/10s", (5, 10)),
        ("1/h", (1, 3600)),
        ("3/2d", (3, 172_800)),
        ("01/001s", (1, 1)),
    ],
)
def test_a_rate_is_a_number_and_a_length_of_time(text: str, rate: Any) -> None:
    assert rate_of("rate", text, most=1000, longest=366 * 86_400) == rate


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0/h", "1 to 1,000 at a time, not 0"),
        ("1001/h", "1 to 1,000 at a time, not 1,001"),
        ("1/0s", "a window of 1s to 366d, not 0 seconds"),
        ("1/367d", "a window of 1s to 366d"),
        *[
            (text, "must be a rate such as '100/m'")
            for text in ("", "1", "1/", "/h", "-1/h", "1.5/h", "1/1.5h", "1/w", "1/h ", "1/H",
                         "٣/h", "1/٣h", "1/h\n", "9999999999/h", None, 5, b"1/h")
        ],
    ],
)  # fmt: skip
def test_a_throttle_that_cannot_be_is_refused(text: Any, reason: str) -> None:
    with pytest.raises(InvalidTask, match=reason):
        Throttle(text)
