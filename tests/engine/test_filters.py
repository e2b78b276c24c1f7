"""A filter chooses the tasks that fit all that it says, and can be stored."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from taskqueue import task
from taskqueue.engine.control.at_path import split_path
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.models import Lease, Task
from tests.sample.tasks import add, echo, log_in, noop

pytestmark = pytest.mark.django_db

SECRET = "correct horse"


def found(**choice: Any) -> set[Any]:
    """The ids of the tasks that fit."""
    return set(TaskFilter(**choice).tasks(connection).values_list("id", flat=True))


def fits(result: Any, **choice: Any) -> bool:
    """Whether the filter finds this task alone."""
    ids = found(**choice)
    assert ids <= {result.id}, ids
    return bool(ids)


# By what stands in columns


def test_names_are_found_whole_by_their_beginning_or_by_their_last_part() -> None:
    one, other = add.enqueue(1), noop.enqueue()
    assert fits(one, name=add.name)
    assert found(name=[add.name, noop.name]) == {one.id, other.id}
    assert found(name_prefix="tests.sample.") == {one.id, other.id}
    assert fits(one, name=add.name, name_prefix="shop.")
    assert not found(name_prefix="Tests.")
    assert not found(name_prefix="%")
    assert fits(one, words=["add"])
    assert fits(one, words=[add.name])
    assert not found(words=["add", "noop"])


def test_a_key_is_found_whole_and_by_a_part_as_a_word() -> None:
    keyed = add.using(unique_key="order:1").enqueue(1)
    other = add.using(unique_key="order:11").enqueue(1)
    assert fits(keyed, unique_key="order:1")
    assert found(words=["order:1", "add"]) == {keyed.id, other.id}


def test_a_word_is_found_in_the_name_the_key_and_the_error_in_either_case() -> None:
    one, other = add.using(unique_key="order:1").enqueue(1), noop.enqueue()
    error = {"error_class": "socket.gaierror", "error_message": "Name not known"}
    Task.objects.filter(pk=other.id).update(**error)
    assert fits(one, words=["SAMPLE.tasks.a"])
    assert fits(one, words=["der:"])
    assert fits(other, words=["gaierr", "not KNOWN", "noop"])
    assert not found(words=["gaierr", "add"])


def test_tasks_are_found_by_when_they_ended() -> None:
    failed, done, ready = (noop.enqueue() for _ in range(3))
    at = timezone.now()
    ended = {"finished_at": at, "started_at": at}
    Task.objects.filter(pk=failed.id).update(status="failed", **ended)
    Task.objects.filter(pk=done.id).update(status="succeeded", **ended)
    before, after = at - timedelta(seconds=1), at + timedelta(seconds=1)
    assert found(finished_after=before) == {failed.id, done.id}
    assert found(failed_after=before) == {failed.id}
    assert found(finished_after=before, finished_before=after) == {failed.id, done.id}
    assert not found(finished_before=at)
    assert not found(failed_after=at)
    assert ready.id not in found(finished_after=before)


def test_errors_are_found_by_class_and_by_a_part_of_the_message() -> None:
    result = add.enqueue(1)
    add.enqueue(2)
    Task.objects.filter(id=result.id).update(
        status="failed", finished_at=timezone.now(), error_class="shop.errors.NoStock",
        error_message="Nothing left of 10_000 % in store",
    )  # fmt: skip
    assert fits(result, error_class="shop.errors.NoStock")
    assert fits(result, error_class=["KeyError", "NoStock"])
    assert not found(error_class="Stock")
    assert fits(result, error_path=["KeyError", "shop.errors.NoStock"])
    assert not found(error_path=["NoStock", "errors.NoStock"])
    assert result.id not in found(error_path=["", "NoStock"])
    assert fits(result, error_text="NOTHING left")
    assert fits(result, error_text="10_000 %")
    assert not found(error_text="10x000")


def test_priorities_are_found_by_their_range() -> None:
    low, high = add.using(priority=-5).enqueue(1), add.using(priority=7).enqueue(1)
    assert fits(high, lowest_priority=7)
    assert fits(low, highest_priority=-5)
    assert found(lowest_priority=-5, highest_priority=7) == {low.id, high.id}
    assert not found(lowest_priority=-4, highest_priority=6)


def test_workers_are_those_that_have_held_it() -> None:
    now, result = timezone.now(), add.enqueue(1)
    add.enqueue(2)
    Lease.objects.create(
        task_id=result.id, worker_id="w1", attempt=1, status="lost", claimed_at=now,
        finished_at=now, expires_at=now,
    )  # fmt: skip
    assert fits(result, worker=["w0", "w1"])
    assert not found(worker="w")


# By what stands in JSON


@override_settings(TASKQUEUE={"CHECK_ARGUMENTS": False})
@pytest.mark.parametrize(
    ("value", "typed"),
    [
        (42, "42"), ("42", "42"), (4.5, "4.5"), (4.0, "4"), (True, "true"), ("true", "true"),
        (None, "null"), ("a b", "a b"), ("é", "é"), ("☃", "☃"), ("", ""), (-1, "-1"),
        ('say "hi" \\', 'say "hi" \\'), (2**53 + 1, "9007199254740993"),
    ],
)  # fmt: skip
def test_a_value_is_compared_as_json(value: Any, typed: str) -> None:
    """However it was given: positional, by keyword, or carried along."""
    positional, named = add.enqueue(value), add.enqueue(a=value)
    carried = noop.using(metadata={"a": value}).enqueue()
    add.enqueue([value])
    assert found(arguments={"a": typed}) == {positional.id, named.id}
    assert found(metadata={"a": [typed, "other"]}) == {carried.id}


@pytest.mark.parametrize("typed", ["1", "0", "True", "x' OR 1=1 --", "[1]", "1e400", "NaN", "'"])
def test_a_value_that_differs_is_not_found(typed: str) -> None:
    add.enqueue(True, b=2)
    assert not found(arguments={"a": typed})


def test_a_path_leads_into_lists_and_objects() -> None:
    inside = echo.enqueue(user={"id": 42, "tags": ["a", {"é ü": "b"}], "7": "seven"})
    echo.enqueue(user={"id": 43})
    for path, typed in (
        ("user.id", "42"), ("user.tags.0", "a"), ("user.tags.1.é ü", "b"), ("user.7", "seven"),
    ):  # fmt: skip
        assert fits(inside, arguments={path: typed}), path
    for path in ("user", "user.tags", "user.id.x", "user.tags.9", "id", "user.ID"):
        assert not found(arguments={path: "42"}), path


def test_positional_arguments_are_found_by_place_too() -> None:
    result = add.enqueue(5, 6)
    assert fits(result, arguments={"1": "6"})
    assert fits(result, arguments={"b": "6", "a": "5"})
    assert not found(arguments={"0": "6"})
    several = echo.enqueue("x", "y")
    assert fits(several, arguments={"args.1": "y"})
    assert fits(several, arguments={"1": "y"})


@pytest.mark.parametrize("path", ["", ".", "a..b", "a.", 'a"b', "a\\b", "a\x00", "\ud800", "." * 9])
def test_an_invalid_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        split_path(path)
    with pytest.raises(ValueError, match="path"):
        TaskFilter(metadata={path: "1"})


# No oracle


def test_a_sensitive_argument_is_found_by_nothing() -> None:
    """Nor by its place, however the task was enqueued, whoever asks."""
    positional = log_in.enqueue("bob", SECRET)
    named = log_in.enqueue(user="bob", password=SECRET)
    for choice in ({"password": SECRET}, {"1": SECRET}):
        assert not found(arguments=choice)
        assert not found(arguments=choice, arguments_of_unknown=True)
        assert not found(arguments=choice, name=log_in.name)
    assert found(arguments={"user": "bob"}) == {positional.id, named.id}


def test_unknown_arguments_of_a_sensitive_definition_cannot_be_searched() -> None:
    """Other code may have enqueued it, under a name that was the secret's."""
    result = log_in.enqueue("bob", SECRET)
    Task.objects.filter(id=result.id).update(args=["bob", "x", SECRET], kwargs={"pass": SECRET})
    for path in ("pass", "2"):
        assert not found(arguments={path: SECRET}, arguments_of_unknown=True)


def test_arguments_of_unknown_definitions_are_asked_only_on_request() -> None:
    result = add.enqueue(1)
    Task.objects.filter(id=result.id).update(name="shop.gone", args=[7], kwargs={"key": SECRET})
    for choice in ({"key": SECRET}, {"0": "7"}):
        assert not found(arguments=choice)
        assert not found(arguments=choice, name="shop.gone")
        assert fits(result, arguments=choice, arguments_of_unknown=True)
        assert fits(result, arguments=choice, name="shop.gone", arguments_of_unknown=True)


def test_the_rest_of_the_keywords_may_be_sensitive() -> None:
    @task(name="tests.sealed", sensitive=["rest"])
    def sealed(user: str, **rest: Any) -> None:
        """Hides what it is given besides."""

    result = sealed.enqueue("bob", token=SECRET)
    assert not found(arguments={"token": SECRET}, arguments_of_unknown=True)
    assert fits(result, arguments={"user": "bob"})


# Odd choices


@pytest.mark.parametrize("text", ["\x00", "a\ud800", "\udfff"])
def test_text_that_cannot_be_stored_matches_no_task(text: str) -> None:
    add.enqueue(1)
    for name in ("name", "name_prefix", "unique_key", "schedule", "error_text", "worker"):
        assert not found(**{name: text})
        assert not found(**{name: ["x", text]})
    assert not found(words=[text])
    assert not found(arguments={"a": text})
    assert not found(metadata={"a": text})


def test_an_empty_collection_fits_nothing() -> None:
    add.enqueue(1)
    for name in ("ids", "statuses", "name", "queue_name", "worker", "error_class", "schedule"):
        assert not found(**{name: []}), name


@pytest.mark.parametrize(
    "choice",
    [
        {}, {"arguments": {}}, {"words": []}, {"everything": True, "name": "x"},
        {"arguments_of_unknown": True}, {"name_prefix": [""]}, {"error_text": ["a", ""]},
        {"lowest_priority": 101}, {"highest_priority": "1"}, {"lowest_priority": True},
        {"statuses": ["gone"]},
    ],
)  # fmt: skip
def test_a_choice_that_says_nothing_or_nonsense_is_refused(choice: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        TaskFilter(**choice)


# Stored


def test_a_filter_comes_back_from_json_as_it_was() -> None:
    now = datetime(2026, 11, 1, 12, tzinfo=UTC)
    result = add.enqueue(1)
    which = TaskFilter(
        ids=[result], statuses=["failed"], name=echo.name, name_prefix=["b", "c"], words=["d"],
        queue_name="e", worker="f", error_class="g", error_path="n", error_text="h",
        unique_key="i", schedule="j",
        arguments={"k.l": "1"}, arguments_of_unknown=True, metadata={"m": ["2", "3"]},
        lowest_priority=-1, highest_priority=1, enqueued_after=now - timedelta(days=1),
        enqueued_before=now,
    )  # fmt: skip
    stored = json.loads(json.dumps(which.to_json()))
    again = TaskFilter.from_json(stored)
    assert again.to_json() == stored
    assert len(stored) == 19
    queries = [replace(each, schedule="").tasks(connection).query for each in (which, again)]
    assert str(queries[0]) == str(queries[1])
    assert TaskFilter.from_json({"everything": True}).everything
    assert TaskFilter.from_json({"ids": []}).ids == ()


@pytest.mark.parametrize(
    "stored",
    [
        None, [], "x", {}, {"nme": ["x"]}, {"name": "x"}, {"name": [1]}, {"ids": ["no-id"]},
        {"statuses": "failed"}, {"enqueued_after": 3}, {"enqueued_after": "2026-11-01"},
        {"arguments": {"a": "1"}}, {"arguments": {"..": ["1"]}}, {"arguments": []},
        {"everything": 1}, {"lowest_priority": "1"}, {"name": ["\x00"]}, {"words": ["\ud800"]},
        {"name": ["x"], "everything": True},
    ],
)  # fmt: skip
def test_an_invalid_stored_filter_is_refused(stored: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        TaskFilter.from_json(stored)
