"""Debounce: of a burst of calls the last one runs, and none is lost."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from taskqueue import Capacity, Debounce, InvalidTask, Throttle, task
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Task
from taskqueue.monitoring.why import why
from tests.engine.steps import (
    Undo,
    claim,
    claim_one,
    end,
    make_due,
    past,
    promote,
    run_at_once,
    task_of,
)
from tests.sample.tasks import add, echo

pytestmark = pytest.mark.django_db
index = echo.using(debounce=Debounce(60, key="doc_id", max_wait=600))
MINUTE = timedelta(seconds=60)


def start_times(result: Any) -> tuple[Any, Any]:
    row = task_of(result)
    return row.run_after, row.enqueued_at


def test_the_first_call_waits_and_the_next_one_replaces_it_and_puts_it_off() -> None:
    first = index.enqueue(doc_id=1, text="a")
    assert (first.created, first.status) == (True, "scheduled")
    run_after, enqueued_at = start_times(first)
    assert run_after - enqueued_at == MINUTE
    assert index.enqueue(doc_id=2).created

    second = index.enqueue(doc_id=1, text="b")
    assert (second.id, second.created, second.updated) == (first.id, False, True)
    row = task_of(first)
    assert row.kwargs == {"doc_id": 1, "text": "b"}
    assert row.run_after > run_after
    assert row.enqueued_at == enqueued_at


def test_calls_that_keep_coming_put_it_off_no_longer_than_max_wait() -> None:
    first = index.enqueue(doc_id=1)
    Task.objects.filter(id=first.id).update(enqueued_at=timezone.now() - 9.5 * MINUTE)
    index.enqueue(doc_id=1, text="b")
    run_after, enqueued_at = start_times(first)
    assert run_after - enqueued_at == 10 * MINUTE


def test_a_call_after_max_wait_keeps_its_place_in_line() -> None:
    first = index.enqueue(doc_id=1)
    Task.objects.filter(id=first.id).update(enqueued_at=timezone.now() - 20 * MINUTE)
    assert index.enqueue(doc_id=1, text="b").status == "ready"
    row = task_of(first)
    assert row.run_after - row.enqueued_at == 10 * MINUTE
    ready_at = row.ready_at

    assert index.enqueue(doc_id=1, text="c").updated
    again = task_of(first)
    assert (again.run_after, again.ready_at) == (row.run_after, ready_at)
    assert json.loads(claim_one().kwargs) == {"doc_id": 1, "text": "c"}


def test_without_max_wait_a_call_puts_it_off_as_long_as_it_waits() -> None:
    forever = echo.using(debounce=Debounce(timedelta(minutes=1)))
    first = forever.enqueue()
    Task.objects.filter(id=first.id).update(enqueued_at=past())
    assert forever.enqueue().status == "scheduled"


def test_a_call_before_a_worker_has_it_puts_off_one_that_is_due() -> None:
    first = index.enqueue(doc_id=1)
    make_due(first)
    promote()
    assert index.enqueue(doc_id=1, text="b").status == "scheduled"
    assert claim(1) == []


def test_a_call_while_it_runs_makes_the_next_task() -> None:
    first = index.enqueue(doc_id=1)
    make_due(first)
    promote()
    claimed = claim_one()
    second = index.enqueue(doc_id=1, text="b")
    assert second.created
    assert second.id != first.id
    assert task_of(first).kwargs == {"doc_id": 1}
    end(claimed, OutcomeKind.RETRY_LATER)
    assert index.enqueue(doc_id=1, text="c").id == second.id


def test_a_call_after_it_was_cancelled_makes_another_task() -> None:
    first = index.enqueue(doc_id=1)
    first.cancel()
    assert index.enqueue(doc_id=1).created


def test_a_call_that_is_rolled_back_leaves_what_was_there() -> None:
    first = index.enqueue(doc_id=1, text="a")
    before = task_of(first).run_after
    with suppress(Undo), transaction.atomic():
        index.enqueue(doc_id=1, text="b")
        raise Undo
    row = task_of(first)
    assert (row.kwargs["text"], row.run_after) == ("a", before)


def test_many_calls_at_once_leave_the_last_one_of_each_key() -> None:
    results = index.enqueue_many([((), {"doc_id": place % 3, "n": place}) for place in range(9)])
    assert [result.created for result in results] == [True] * 3 + [False] * 6
    assert [result.updated for result in results] == [False] * 3 + [True] * 6
    assert sorted(row.kwargs["n"] for row in Task.objects.all()) == [6, 7, 8]


def test_keys_are_text_and_may_be_made_of_several_arguments_or_by_a_callable() -> None:
    def key(**given: Any) -> str | None:
        return given["name"]

    cases: list[tuple[Any, dict[str, Any], str | None]] = [
        ("name", {"name": "ada"}, "debounce:ada"),
        ("name", {"name": 42}, "debounce:42"),
        ("name", {"name": None}, "debounce:null"),
        (("name", "of"), {"name": "ada", "of": {"b": 1, "a": 2}}, 'debounce:["ada",{"a":2,"b":1}]'),
        (None, {}, "debounce"),
        (key, {"name": "ada"}, "debounce:ada"),
        (key, {"name": None}, None),
    ]
    for made_of, kwargs, stored in cases:
        result = echo.using(debounce=Debounce(5, key=made_of)).enqueue(**kwargs)
        assert task_of(result).unique_key == stored
        assert result.status == ("scheduled" if stored else "ready")


def test_defaults_of_the_signature_belong_to_the_key() -> None:
    summed = add.using(debounce=Debounce(5, key="b"))
    assert summed.enqueue(1).id == summed.enqueue(2, b=1).id


def test_a_long_key_and_one_made_of_a_sensitive_argument_are_stored_as_a_hash() -> None:
    long = echo.using(debounce=Debounce(5, key="name"))
    first, second = long.enqueue(name="a" * 1000), long.enqueue(name="a" * 1000)
    assert first.id == second.id
    assert str(task_of(first).unique_key).startswith("debounce:hmac:")

    for key in ("token", ("token",), lambda token: token):
        login = task(name="login", sensitive=["token"], debounce=Debounce(5, key=key))(body)
        result = login.enqueue("plain-secret")
        assert "plain-secret" not in str(task_of(result).unique_key)
        assert not login.enqueue("plain-secret").created
        assert login.enqueue("another").created
        Task.objects.all().delete()


def body(token: str) -> None:
    """What has a secret."""


@pytest.mark.parametrize("made", [5, "k" * 256, "\x00"])
def test_a_callable_that_makes_no_text_is_refused_and_nothing_written(made: Any) -> None:
    with pytest.raises(InvalidTask, match=r"The key that debounce= makes"):
        echo.using(debounce=Debounce(5, key=lambda: made)).enqueue()
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Debounce(0), "0.001 seconds to 30 days"),
        (lambda: Debounce(True), "not True"),
        (lambda: Debounce("5"), "not '5'"),  # type: ignore[arg-type]
        (lambda: Debounce(float("nan")), "not nan"),
        (lambda: Debounce(31 * 86_400), "30 days"),
        (lambda: Debounce(60, max_wait=5), "must not be shorter than wait=60"),
        (lambda: Debounce(5, key=5), "the name of an argument, a tuple of names"),  # type: ignore[arg-type]
        (lambda: Debounce(5, key=()), "the name of an argument"),
        (lambda: Debounce(5, key=""), "the name of an argument"),
        (lambda: Debounce(5, key=("a", 5)), "the name of an argument"),  # type: ignore[arg-type]
        (lambda: Debounce(5, key={"a": 1}), "the name of an argument"),  # type: ignore[arg-type]
    ],
)
def test_a_debounce_that_cannot_be_is_refused(make: Any, reason: str) -> None:
    with pytest.raises(InvalidTask, match=reason):
        make()


@pytest.mark.parametrize(
    "options",
    [
        {"unique_key": "a"},
        {"unique_key": "a", "unique_per": "hour"},
        {"unique_scope": "shop"},
        {"unique_for": "started"},
        {"on_duplicate": "raise"},
        {"workers": 2},
        {"worker_names": ["a"]},
        {"broadcast": True},
        {"throttle": Throttle("1/h")},
        {"capacity": Capacity(1)},
        {"run_after": 5},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_that_a_debounce_excludes_are_refused_with_a_remedy(
    options: dict[str, Any],
) -> None:
    with pytest.raises(InvalidTask, match="debounce=None"):
        index.using(**options)
    assert index.using(debounce=None, **options).options.debounce is None


def test_why_says_that_it_is_debounced() -> None:
    reason = why(task_of(index.enqueue(doc_id=1)))[0]
    assert reason.code == "debounced"
    assert "unless it is enqueued again before" in reason.sentence


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_no_call_is_lost_while_workers_claim_what_is_due() -> None:
    """Whatever is called last is in a task that waits, or was claimed after that call."""
    now = echo.using(debounce=Debounce(0.001, key="doc_id", max_wait=0.001))
    ran: list[int] = []

    def call(numbers: range) -> None:
        for number in numbers:
            now.enqueue(doc_id=1, n=number)

    def work() -> None:
        for _ in range(120):
            promote()
            for each in claim(5):
                ran.append(json.loads(each.kwargs)["n"])
                end(each, OutcomeKind.SUCCEEDED)

    run_at_once([lambda: call(range(100)), work])
    waiting = [row.kwargs["n"] for row in Task.objects.exclude(status="succeeded")]
    assert max([*ran, *waiting]) == 99
    assert [*ran, *waiting] == sorted({*ran, *waiting}), "Later calls run later, each once."
