"""What is stored comes back the same, and what would not is refused before anything is written."""

from __future__ import annotations

import json
import math
from collections import OrderedDict, UserList, UserString
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pytest
from django.test import override_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskqueue import InvalidArguments
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.payload import DEEPEST, encode
from taskqueue.exceptions import UnsupportedType
from taskqueue.models import Task
from taskqueue.results import get_result
from tests.engine.steps import claim, claim_one, end
from tests.sample.tasks import echo

pytestmark = pytest.mark.django_db


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


def nested(levels: int) -> Any:
    """Lists in each other, that many."""
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def endless() -> list[Any]:
    """A list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


REFUSED: dict[str, tuple[Any, str]] = {
    "a NUL character": ("a\x00b", "NUL"),
    "a NUL beside other alphabets": ("é\x00", "NUL"),
    "a lone surrogate": ("\ud800", "surrogate"),
    "a NUL in bytes": (b"\x00", "NUL"),
    "a NUL in a key": ({"\x00": 1}, "NUL"),
    "a lone surrogate in a key": ({"\udfff": 1}, "surrogate"),
    "NaN": (math.nan, "nan"),
    "infinity": (math.inf, "inf"),
    "minus infinity": (-math.inf, "-inf"),
    "an integer of 65 bits": (2**63, "64 bits"),
    "a negative integer of 65 bits": (-(2**63) - 1, "64 bits"),
    "deep lists": (nested(DEEPEST), "deeper than 32"),
    "a list that holds itself": (endless(), "deeper than 32"),
    "bytes that are not text": (b"\xff", "UTF-8"),
    "a set": ({1}, "Unsupported type"),
    "a frozenset": (frozenset({1}), "Unsupported type"),
    "a datetime": (datetime(2024, 1, 1), "Unsupported type"),
    "a date": (date(2024, 1, 1), "Unsupported type"),
    "a timedelta": (timedelta(1), "Unsupported type"),
    "a decimal": (Decimal("1.1"), "Unsupported type"),
    "a UUID": (uuid4(), "Unsupported type"),
    "an object": (object(), "Unsupported type"),
    "a complex number": (1j, "Unsupported type"),
    "a generator": ((i for i in ()), "Unsupported type"),
    "a range": (range(3), "Unsupported type"),
    "a bytearray": (bytearray(b"x"), "Unsupported type"),
    "an integer as a key": ({1: "x"}, "Keys of JSON objects are text"),
    "None as a key": ({None: "x"}, "Keys of JSON objects are text"),
    "bytes as a key": ({b"k": "x"}, "Keys of JSON objects are text"),
}

NORMALISED: dict[str, tuple[Any, Any]] = {
    "a tuple becomes a list": ((1, (2,)), [1, [2]]),
    "bytes become text": ("é".encode(), "é"),
    "a text enum becomes text": (Colour.RED, "red"),
    "a number enum becomes a number": (Level.HIGH, 3),
    "a mapping becomes an object": (MappingProxyType({"a": 1}), {"a": 1}),
    "an ordered mapping becomes an object": (OrderedDict(a=(1,)), {"a": [1]}),
    "another sequence becomes a list": (UserList([1, b"x"]), [1, "x"]),
    "an enum as a key becomes text": ({Colour.RED: 1}, {"red": 1}),
    "true and false stay": ([True, False, None], [True, False, None]),
}

EXACT = [
    0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63),
    0.0, 1.0, -1.0, 0.1, 1e15, 1e16, -1e16, 1.5e16, 1e22, 1e23, 1e100, 1.5e300, 1e300,
    1.7976931348623157e308, 2.2250738585072014e-308, 5e-324, 1e-7, -1e-300, 123456789.125,
    "", "text", "é", "\U0001f600", "\x7f\x1f\t\n\r", "\\", '"', "\\u0000", "\u2028\ufeff\uffff",
    True, False, None, [], {}, [[]], {"": {}}, {"a": [1, 1.0, "1"]}, "\\N", "a\tb\\.\n", "{}",
]  # fmt: skip


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types: 1, 1.0 and True are three things."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def stored_args(value: Any) -> Any:
    return Task.objects.get(id=echo.enqueue(value).id).args[0]


@pytest.mark.parametrize(("value", "reason"), REFUSED.values(), ids=REFUSED)
def test_an_argument_that_would_not_come_back_is_refused_and_nothing_written(
    value: Any, reason: str
) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: echo.enqueue(value),
        lambda: echo.enqueue(key=value),
        lambda: echo.enqueue_many([((1,), {}), ((value,), {})]),
    ]
    for call in calls:
        with pytest.raises(InvalidArguments, match=reason):
            call()
    assert not Task.objects.exists()


def test_the_error_names_the_place_of_what_is_wrong() -> None:
    with pytest.raises(InvalidArguments, match=r"args\[0\]\['a'\]\[1\] cannot be stored: nan"):
        echo.enqueue({"a": [1, math.nan]})
    with pytest.raises(UnsupportedType, match=r"kwargs\['when'\]\[0\]"):
        echo.enqueue(when=[timedelta(1)])


def test_an_unsupported_type_is_a_type_error_as_django_raises() -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        echo.enqueue({1, 2})


def test_text_of_another_class_is_refused_with_the_remedy() -> None:
    with pytest.raises(UnsupportedType, match=r"UserString.* at args\[0\].*: str\(value\)"):
        echo.enqueue(UserString("text"))


@pytest.mark.parametrize(("value", "normal"), NORMALISED.values(), ids=NORMALISED)
def test_a_value_is_normalised_as_django_does(value: Any, normal: Any) -> None:
    result = echo.enqueue(value, key=value)
    assert same(result.args, [normal])
    assert same(result.kwargs, {"key": normal})
    result.refresh()
    assert same(result.args, [normal])
    assert same(result.kwargs, {"key": normal})


@pytest.mark.parametrize("value", EXACT, ids=ascii)
def test_a_value_comes_back_as_json_gives_it_through_every_way_of_writing(value: Any) -> None:
    one = echo.enqueue(value)
    later = echo.using(run_after=timedelta(hours=1)).enqueue(value)
    (many,) = echo.enqueue_many([((value,), {"key": value})])
    claimed = {each.task_id: each for each in claim()}
    for result in (one, later, many):
        assert same(get_result(result.id).args, json.loads(json.dumps([value])))
    assert same(get_result(many.id).kwargs, {"key": value})
    for result in (one, many):
        assert same(json.loads(claimed[str(result.id)].args), [value])


@pytest.mark.parametrize("value", EXACT, ids=ascii)
def test_a_return_value_comes_back_as_json_gives_it(value: Any) -> None:
    result = echo.enqueue()
    end(
        claim_one(),
        OutcomeKind.SUCCEEDED,
        return_value=encode(value, limit=10**6, what="result"),
    )
    result.refresh()
    assert same(result.return_value, value)


def test_minus_zero_comes_back_as_a_zero_that_equals_it() -> None:
    """A jsonb number has no sign of zero: the sign is all that PostgreSQL drops."""
    assert same(stored_args(-0.0), -0.0)
    assert same(stored_args([-0.0, {"a": -0.0}]), [-0.0, {"a": -0.0}])


texts = st.text(
    alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20
)
documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(args=st.lists(documents, max_size=3), kwargs=st.dictionaries(texts, documents, max_size=3))
def test_any_json_document_makes_the_round_trip(args: list[Any], kwargs: dict[str, Any]) -> None:
    expected = json.loads(json.dumps([args, kwargs]))
    one = echo.enqueue(*args, **kwargs)
    (many,) = echo.enqueue_many([(args, kwargs)])
    for result in (get_result(one.id), get_result(many.id)):
        assert same([result.args, result.kwargs], expected)


@settings(max_examples=300)
@given(document=documents)
def test_the_text_of_a_document_is_the_document(document: Any) -> None:
    text = encode(document, limit=10**6, what="it")
    assert text.isascii()
    assert same(json.loads(text), document)


def test_arguments_may_nest_as_deep_as_the_limit_counting_their_own_list() -> None:
    assert stored_args(nested(DEEPEST - 1)) == nested(DEEPEST - 1)
    assert echo.enqueue(key=nested(DEEPEST - 1)).id
    with pytest.raises(InvalidArguments, match="deeper than 32"):
        echo.enqueue(key=nested(DEEPEST))


def test_arguments_may_fill_the_limit_and_not_a_byte_more() -> None:
    with override_settings(TASKQUEUE={"MAX_ARGUMENTS": 100}):
        assert echo.enqueue("x" * (100 - len('[""]'))).id
        with pytest.raises(InvalidArguments, match=r"^args must be at most 100 bytes"):
            echo.enqueue("x" * (101 - len('[""]')))
        with pytest.raises(InvalidArguments, match="kwargs must be at most"):
            echo.enqueue("x" * 60, key="x" * 60)
    assert Task.objects.count() == 1


def test_the_limit_is_64_kib_by_default_counted_as_json_text() -> None:
    echo.enqueue("x" * (64 * 1024 - 4))
    with pytest.raises(InvalidArguments, match="at most 65,536 bytes as JSON, not 65,537"):
        echo.enqueue("x" * (64 * 1024 - 3))
    with pytest.raises(InvalidArguments, match="Store large data elsewhere"):
        echo.enqueue("é" * (16 * 1024))
