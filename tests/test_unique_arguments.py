"""A unique key may be made of the arguments: of all of them, or of named ones."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from taskqueue import InvalidTask
from taskqueue.declarations.options import Options
from taskqueue.declarations.scheduled import Scheduled
from taskqueue.definitions import Definition
from taskqueue.engine.schedules.editing import snapshot_of
from taskqueue.rules import Every
from tests.engine.steps import task_of
from tests.sample.tasks import add, echo, fail

pytestmark = pytest.mark.django_db
MISSING: Any = object()


def sell(order_id: Any, kind: Any = "new", *rest: Any, note: Any = MISSING, **more: Any) -> None:
    """Has a parameter of each kind."""


def key_of(unique_key: Any, *args: Any, body: Any = sell, **kwargs: Any) -> str:
    _, _, key = Definition(body, Options(name="sell", unique_key=unique_key)).encode(args, kwargs)
    assert key is not None
    return key


def test_the_same_arguments_meet_however_they_are_written() -> None:
    whole = add.using(unique_key=True)
    first = whole.enqueue(1, 2)
    assert whole.enqueue(a=1, b=2).id == whole.enqueue(1, b=2).id == first.id
    assert whole.enqueue(2, 1).created
    assert whole.enqueue_many([((1, 2), {}), ((1, 3), {}), ((1,), {"b": 3})])[1].created
    key = task_of(first).unique_key
    assert key is not None
    assert len(key) == len("hmac:") + 64


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (((1,), {}), ((1, "new"), {})),
        (((1,), {}), ((1,), {"kind": "new"})),
        ((((1, 2),), {}), (([1, 2],), {})),
        ((({"a": 1, "b": 2},), {}), (({"b": 2, "a": 1},), {})),
        (((1,), {"x": 1, "y": 2}), ((1,), {"y": 2, "x": 1})),
        (((b"text",), {}), (("text",), {})),
    ],
)
def test_normalised_arguments_with_defaults_make_the_same_key(one: Any, other: Any) -> None:
    assert key_of(True, *one[0], **one[1]) == key_of(True, *other[0], **other[1])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (((1,), {}), (("1",), {})),
        (((1,), {}), ((True,), {})),
        (((1,), {}), ((1.0,), {})),
        (((1,), {}), ((1, "old"), {})),
        (((1,), {}), ((1,), {"note": None})),
        (((1, "new", 3), {}), ((1, "new"), {"rest": 3})),
        (((1,), {"x": 1}), ((1,), {"y": 1})),
    ],
)
def test_other_arguments_make_another_key(one: Any, other: Any) -> None:
    assert key_of(True, *one[0], **one[1]) != key_of(True, *other[0], **other[1])


def test_only_named_arguments_count() -> None:
    named = ("order_id", "kind")
    assert key_of(named, 1, note="a") == key_of(named, 1, "new", note="b", x=5)
    assert key_of(named, 1) == key_of(("kind", "order_id"), 1)
    assert key_of(named, 1) != key_of(named, 2)
    assert key_of(("order_id",), 1) != key_of(named, 1)
    assert key_of(("x",), 1, x=5) == key_of(("x",), 2, x=5) != key_of(("x",), 1)


def test_definitions_that_share_a_scope_make_the_same_key_of_the_same_names() -> None:
    def ship(order_id: int) -> None:
        """Is another body."""

    assert key_of(("order_id",), 7, body=ship) == key_of(("order_id",), 7)


def test_a_guess_of_the_arguments_cannot_be_verified_without_the_projects_secret() -> None:
    keys = [key_of(True, 4711), key_of(("order_id",), 4711), key_of(("x",), 1, x=5)]
    with override_settings(SECRET_KEY="a guess"):
        others = [key_of(True, 4711), key_of(("order_id",), 4711), key_of(("x",), 1, x=5)]
    assert {each[:5] for each in keys} == {"hmac:"}
    assert set(keys).isdisjoint(others)


def test_a_name_that_no_parameter_has_is_refused_at_once() -> None:
    with pytest.raises(InvalidTask, match="names the argument 'c', which the task does not have"):
        add.using(unique_key=("a", "c"))
    assert echo.using(unique_key=("anything",)).enqueue(anything=1).created


def test_a_schedule_makes_its_key_of_its_arguments() -> None:
    scheduled = Scheduled(Every(hours=1), args=[1, 2], options={"unique_key": ["a"]})
    own = add.using(unique_key=("a",)).enqueue(1)
    assert snapshot_of(scheduled, add)["unique_key"] == task_of(own).unique_key


def test_an_option_of_using_takes_the_key_away_again() -> None:
    definition = fail.using(unique_key=True).using(unique_key=None)
    assert definition.enqueue().created
    assert definition.enqueue().created
