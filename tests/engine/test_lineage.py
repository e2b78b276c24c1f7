"""Retry with edited arguments: a new task of the same kind, which knows where it came from."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

from taskqueue import ArgumentsDoNotBind, InvalidArguments, TransitionRefused
from taskqueue.control import retry_with
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.models import Audit, Task
from taskqueue.models.task import Route
from taskqueue.results import TaskResult, get_result
from tests.engine.steps import claim_one, end, task_of
from tests.engine.test_control import task_that_is
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db


def failed(definition: Any, *args: Any, **kwargs: Any) -> TaskResult[Any]:
    result: TaskResult[Any] = definition.enqueue(*args, **kwargs)
    end(claim_one(queue=task_of(result).queue_name), OutcomeKind.FAILED, error_class="E")
    return result


def test_the_new_task_has_the_new_arguments_and_the_old_one_stays() -> None:
    old = failed(add, 1, b=2)
    before = Task.objects.values().get(id=old.id)
    new = old.retry("a typo", args=[5], by="anna")
    assert new.id != old.id
    assert (new.status, new.args, new.kwargs) == ("ready", [5], {"b": 2})
    assert task_of(new).retry_of_id == old.id
    assert Task.objects.values().get(id=old.id) == before
    line = Audit.objects.get()
    assert (line.verb, line.subject, line.actor, line.reason) == (
        "retry",
        str(old.id),
        "anna",
        "a typo",
    )
    assert (line.before, line.detail) == ("failed", f"with other arguments, as {new.id}")
    end(claim_one(), OutcomeKind.SUCCEEDED, return_value="7")
    assert get_result(new.id).return_value == 7


def test_only_what_is_given_is_edited() -> None:
    old = failed(add, 1, b=2)
    assert (old.retry(kwargs={"b": 9}).args, old.retry(args=[], kwargs={"a": 1, "b": 1}).args) == (
        [1],
        [],
    )


def test_the_new_task_has_the_options_of_the_old_one() -> None:
    options = {
        "queue_name": "mail", "priority": 4, "max_attempts": 1, "max_crashes": 2,
        "crash_delay": timedelta(seconds=1), "timeout": 9, "lease_duration": timedelta(seconds=60),
        "ping_interval": timedelta(seconds=2), "retention": timedelta(days=1),
        "metadata": {"of": "anna", "weight": 1e20},
    }  # fmt: skip
    old = task_of(failed(noop.using(**options)))
    new = Task.objects.get(id=retry_with(old.id, args=[]))
    for name in (
        "name", "queue_name", "priority", "max_attempts", "max_crashes", "crash_delay", "options",
        "lease_duration", "ping_interval", "retention", "metadata", "workers", "worker_names",
    ):  # fmt: skip
        assert getattr(new, name) == getattr(old, name), name
    assert (new.attempt, new.failures, new.deadline_at, new.expires_at) == (0, 0, None, None)


def test_it_holds_no_unique_key() -> None:
    old = failed(noop.using(unique_key="one", unique_for="kept"))
    new = task_of(old.retry(args=[]))
    assert (new.unique_key, new.holds_unique_key) == (None, False)
    assert task_of(old).holds_unique_key


def test_arguments_are_checked_as_at_an_enqueue() -> None:
    old = failed(add, 1, b=2)
    with pytest.raises(ArgumentsDoNotBind, match="cannot be called with these arguments"):
        old.retry(args=[1, 2, 3, 4])
    with pytest.raises(InvalidArguments):
        old.retry(args=[{1, 2}])
    with pytest.raises(InvalidArguments, match="must be int, not str"):
        old.retry(args=["x"])
    with (
        override_settings(TASKQUEUE={"CHECK_ARGUMENTS": False}),
        pytest.raises(InvalidArguments, match="must be at most"),
    ):
        old.retry(args=["x" * 100_000])
    assert (Task.objects.count(), Audit.objects.count()) == (1, 0)


@pytest.mark.parametrize(
    ("edited", "message"),
    [
        ({"args": "abc"}, "args must be a list or a tuple, not str"),
        ({"args": {"a": 1}}, "args must be a list or a tuple, not dict"),
        ({"args": 5}, "args must be a list or a tuple, not int"),
        ({"kwargs": "abc"}, "kwargs must be a mapping of names to values, not str"),
        ({"kwargs": [("a", 1)]}, "kwargs must be a mapping of names to values, not list"),
        ({"kwargs": {1: 2}}, "kwargs must have names as keys, not 1"),
    ],
)
def test_arguments_of_a_retry_must_be_a_list_and_a_mapping(edited: Any, message: str) -> None:
    old = failed(add, 1, b=2)
    with pytest.raises(InvalidArguments, match=message):
        old.retry(**edited)
    assert old.retry(args=(3,)).args == [3]
    assert Task.objects.count() == 2


def test_a_task_of_an_unknown_definition_is_held_to_what_json_can_keep() -> None:
    old = failed(add, 1, b=2)
    Task.objects.update(name="shop.tasks.gone")
    with pytest.raises(InvalidArguments):
        old.retry(args=[float("nan")])
    assert old.retry(args=[1, 2, 3, 4]).args == [1, 2, 3, 4]


@pytest.mark.parametrize("status", sorted({*TaskStatus} - FINISHED))
def test_an_unfinished_task_cannot_be_retried_with_other_arguments(status: TaskStatus) -> None:
    result = task_that_is(status)
    with pytest.raises(TransitionRefused, match=rf"is {status}\. Only finished tasks can be"):
        result.retry(args=[])
    assert (Task.objects.count(), Audit.objects.count()) == (1, 0)


def test_a_broadcast_is_seated_anew() -> None:
    old = noop.using(broadcast=True).enqueue()
    Task.objects.filter(id=old.id).update(
        status="failed", finished_at=old.enqueued_at, workers=2, worker_names=["a", "b"]
    )
    new = task_of(old.retry(args=[]))
    assert (new.broadcast, new.route, new.workers, new.worker_names) == (
        True,
        Route.APART,
        0,
        None,
    )
