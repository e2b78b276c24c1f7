"""At any instant at most one task holds a unique key; whoever loses the race gets the holder."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from taskqueue import InvalidTask
from taskqueue.control import retry
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.exceptions import UnsupportedType
from taskqueue.models import Task
from tests.engine.steps import (
    Undo,
    claim,
    claim_one,
    end,
    past,
    task_of,
)
from tests.sample.tasks import echo, unique

pytestmark = pytest.mark.django_db
only = echo.using(unique_key="only")


def finish(kind: OutcomeKind = OutcomeKind.SUCCEEDED) -> None:
    end(claim_one(), kind)


def test_whoever_enqueues_a_held_key_gets_the_holder() -> None:
    first, second = only.enqueue(1), only.enqueue(2)
    assert (first.created, second.created, second.updated) == (True, False, False)
    assert second.id == first.id
    assert second == first
    assert second.args == [1]
    assert second.enqueued_at == first.enqueued_at
    assert Task.objects.count() == 1


def test_different_keys_and_no_key_do_not_meet() -> None:
    results = [only.enqueue(), echo.using(unique_key="other").enqueue(), echo.enqueue()]
    assert all(result.created for result in results)


def test_a_callable_makes_the_key_of_the_arguments() -> None:
    first = unique.enqueue("a")
    assert task_of(first).unique_key == "only:a"
    assert unique.enqueue(key="a").id == first.id
    assert unique.enqueue("b").created
    keyless = echo.using(unique_key=lambda *args: None)
    assert keyless.enqueue().created
    assert keyless.enqueue().created


@pytest.mark.parametrize(
    ("key", "reason"),
    [(5, "must be text, not int"), ("", "empty"), ("k" * 256, "255"), ("\x00", "NUL")],
)
def test_a_callable_that_makes_no_key_is_refused_and_nothing_written(key: Any, reason: str) -> None:
    definition = echo.using(unique_key=lambda: key)
    with pytest.raises(InvalidTask, match=reason):
        definition.enqueue()
    with pytest.raises(InvalidTask, match=reason):
        definition.enqueue_many([((), {})])
    assert not Task.objects.exists()


def test_an_error_of_the_unique_key_callable_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        echo.using(unique_key=lambda: str(1 / 0)).enqueue()


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (OutcomeKind.SUCCEEDED, {}),
        (OutcomeKind.FAILED, {"error_class": "ValueError"}),
        (OutcomeKind.CANCELLED, {}),
    ],
)
def test_until_finished_the_key_is_held_and_not_after(kind: OutcomeKind, fields: Any) -> None:
    first = only.enqueue()
    claimed = claim_one()
    assert only.enqueue().id == first.id
    end(claimed, kind, **fields)
    assert only.enqueue().created


def test_a_cancelled_task_releases_its_key() -> None:
    only.enqueue().cancel()
    assert only.enqueue().created


@pytest.mark.parametrize(
    "kind", [OutcomeKind.RETRY_LATER, OutcomeKind.SNOOZED, OutcomeKind.LOST, OutcomeKind.RETURNED]
)
def test_a_task_that_will_run_again_holds_its_key(kind: OutcomeKind) -> None:
    first = only.enqueue()
    end(claim_one(), kind)
    assert only.enqueue().id == first.id


def test_until_started_the_key_is_free_once_a_worker_has_the_task() -> None:
    definition = only.using(unique_for="started")
    first = definition.enqueue()
    assert definition.enqueue().id == first.id
    claimed = claim_one()
    second = definition.enqueue()
    assert second.created
    assert end(claimed, OutcomeKind.RETURNED) == "ready"
    assert not task_of(first).holds_unique_key
    assert definition.enqueue().id == second.id


def test_a_key_that_was_released_is_never_regained() -> None:
    first = only.enqueue()
    finish()
    second = only.enqueue()
    first.retry()
    assert first.status == "ready"
    assert not task_of(first).holds_unique_key
    assert only.enqueue().id == second.id


def test_a_key_stays_with_a_task_that_is_kept() -> None:
    definition = only.using(unique_for="kept", retention=0)
    first = definition.enqueue()
    finish()
    assert task_of(first).prune_after is None
    again = definition.enqueue()
    assert (again.id, again.status, again.created) == (first.id, "succeeded", False)
    retry(first.id)
    assert task_of(first).holds_unique_key
    finish(OutcomeKind.FAILED)
    assert definition.enqueue().id == first.id


def test_a_key_held_for_a_time_outlives_its_task() -> None:
    definition = only.using(unique_for=60)
    first = definition.enqueue()
    assert task_of(first).unique_until == first.enqueued_at + timedelta(seconds=60)
    finish()
    assert definition.enqueue().id == first.id


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_holder_whose_time_is_over_is_cleared_by_the_next_enqueue(is_finished: bool) -> None:
    definition = only.using(unique_for=60)
    first = definition.enqueue()
    if is_finished:
        finish()
    Task.objects.update(unique_until=past())
    second = definition.enqueue()
    assert second.created
    assert not task_of(first).holds_unique_key
    assert definition.enqueue().id == second.id


def test_many_with_keys_return_the_holder_where_there_is_one() -> None:
    held = unique.enqueue("m")
    calls = [((key,), {}) for key in ("z", "m", "a", "z")]
    results = unique.enqueue_many(calls)
    assert [result.created for result in results] == [True, False, True, False]
    assert results[1].id == held.id
    assert results[3].id == results[0].id
    assert [result.args for result in results] == [["z"], ["m"], ["a"], ["z"]]


def test_many_with_keys_are_first_in_first_out() -> None:
    results = unique.enqueue_many([((key,), {}) for key in "zamb"])
    assert [each.task_id for each in claim()] == [str(result.id) for result in results]


def test_a_bad_call_among_many_with_keys_writes_nothing() -> None:
    with pytest.raises(UnsupportedType):
        echo.using(unique_key=lambda *args: "k").enqueue_many([((1,), {}), (({1},), {})])
    assert not Task.objects.exists()


def test_the_database_itself_refuses_two_holders() -> None:
    only.enqueue()
    second = echo.using(unique_key="second").enqueue()
    with pytest.raises(IntegrityError), transaction.atomic():
        Task.objects.filter(id=second.id).update(unique_key="only")


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_enqueue_holds_no_key() -> None:
    with suppress(Undo), transaction.atomic():
        assert only.enqueue().created
        raise Undo
    assert only.enqueue().created
