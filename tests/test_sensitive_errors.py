"""Errors of arguments show of a sensitive one its name and its type, neither value nor key."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import override_settings

from taskqueue import InvalidArguments
from taskqueue.admin.tasks.parameter_fields import field_of
from taskqueue.declarations.batch import Batch
from taskqueue.declarations.options import Options
from taskqueue.declarations.parameters import parameters
from taskqueue.definitions import Definition
from taskqueue.models import Task
from taskqueue.results import enqueue_many
from tests.sample.typed_tasks import hide

SECRET = "4111-1111"


@dataclass
class Card:
    """Has fields."""

    number: int
    owner: str = ""

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError(f"{self.number} of {self.owner} is no number of a card")


def anything(secret: Any = None, *rest: Any, page: Any = None, **others: Any) -> None:
    """Takes what JSON has."""


def typed(table: dict[str, int] | None = None, cards: dict[str, Card | None] | None = None) -> None:
    """Says what its arguments hold."""


def hiding(body: Any, *sensitive: str, **options: Any) -> Definition[Any, Any]:
    """A definition that no registry knows."""
    return Definition(body, Options(sensitive=frozenset(sensitive), **options))


WRONG: list[tuple[Any, Any, Any, tuple[object, ...]]] = [
    (anything, ({SECRET: object()},), {}, ("args", 0)),
    (anything, ({SECRET: {7: 1}},), {}, ("args", 0)),
    (anything, ({SECRET.encode(): 1},), {}, ("args", 0)),
    (anything, ({SECRET: [math.inf]},), {}, ("args", 0)),
    (anything, ([SECRET.encode() + b"\xff"],), {}, ("args", 0)),
    (anything, (), {"secret": {SECRET: "\x00"}}, ("kwargs", "secret")),
    (anything, (), {"token": {SECRET: {1}}}, ("kwargs", "token")),
    (anything, (1, 2, {SECRET: {1}}), {}, ("args", 2)),
    (typed, ({SECRET: "x"},), {}, ("args", 0)),
    (typed, ({SECRET: object()},), {}, ("args", 0)),
    (typed, (), {"cards": {SECRET: {"number": SECRET}}}, ("kwargs", "cards")),
    (typed, (), {"cards": {"": {"number": -1, "owner": SECRET}}}, ("kwargs", "cards")),
]
ALL = {anything: ("secret", "rest", "token"), typed: ("table", "cards")}


def told(error: BaseException) -> str:
    """All that a report of the error can print, and the values that its causes carry."""
    text = "".join(traceback.format_exception(error))
    seen: BaseException | None = error
    while seen is not None:
        text += repr(seen.args) + repr(vars(seen))
        seen = seen.__context__
    return text


@pytest.mark.parametrize(("body", "args", "kwargs", "path"), WRONG)
@pytest.mark.parametrize(
    "way",
    [
        lambda definition, args, kwargs: definition.encode(args, kwargs),
        lambda definition, args, kwargs: enqueue_many(definition, [(args, kwargs)]),
        lambda definition, args, kwargs: definition.s(*args, **kwargs),
        lambda definition, args, kwargs: definition.si(*args, **kwargs),
    ],
    ids=["enqueue", "enqueue_many", "s", "si"],
)
def test_an_error_shows_neither_keys_nor_values_of_what_is_sensitive(
    way: Callable[..., Any], body: Any, args: Any, kwargs: Any, path: Any
) -> None:
    with pytest.raises(InvalidArguments) as caught:
        way(hiding(body, *ALL[body]), args, kwargs)
    assert SECRET not in told(caught.value)
    assert caught.value.path == path
    assert str(path[1]) in str(caught.value) or "argument 'table'" in str(caught.value)


def test_keys_of_what_is_not_sensitive_are_shown() -> None:
    with pytest.raises(InvalidArguments, match=r"at kwargs\['page'\]\['shown'\]") as caught:
        hiding(anything, "secret").encode((), {"page": {"shown": {1}}})
    assert caught.value.path == ("kwargs", "page", "shown")


def test_the_error_of_a_dataclass_is_shown_if_it_is_not_sensitive() -> None:
    with pytest.raises(InvalidArguments, match=r": -1 of ann is no number of a card$") as caught:
        hiding(typed).encode((), {"cards": {"a": {"number": -1, "owner": "ann"}}})
    assert caught.value.path == ("kwargs", "cards", "a")


def test_an_argument_that_may_follow_a_result_is_hidden_if_its_neighbour_is_sensitive() -> None:
    """Which of the two the argument fills is known once the workflow is built."""

    def body(first: Any, second: Any = None) -> None:
        """Has a secret in the second place."""

    with pytest.raises(InvalidArguments) as caught:
        hiding(body, "second").s({SECRET: {1}})
    assert SECRET not in told(caught.value)


def test_events_of_a_sensitive_batch_are_not_shown() -> None:
    def body(events: list[Any]) -> None:
        """Gets the events."""

    with pytest.raises(InvalidArguments) as caught:
        hiding(body, "events", batch=Batch(max_size=2)).collect({SECRET: {1}})
    assert SECRET not in told(caught.value)


@pytest.mark.django_db
@pytest.mark.parametrize("verb", ["retry", "update"])
def test_neither_does_a_retry_or_an_edit(verb: str) -> None:
    result = hide.enqueue(1)
    if verb == "retry":
        result.cancel()
    unchecked = override_settings(TASKQUEUE={"CHECK_ARGUMENTS": False})
    with unchecked, pytest.raises(InvalidArguments) as caught:
        getattr(result, verb)(args=[{SECRET: {1}}])
    assert SECRET not in told(caught.value)
    assert Task.objects.count() == 1


def test_a_field_of_the_admin_does_not_show_the_keys_either() -> None:
    found = {each.name: field_of(each) for each in parameters(hiding(anything, "secret"))}
    for name, is_shown in [("secret", False), ("page", True)]:
        with pytest.raises(Exception, match="value") as caught:
            found[name].clean(f'{{"{SECRET}": "\\u0000"}}')
        assert (SECRET in told(caught.value)) is is_shown
