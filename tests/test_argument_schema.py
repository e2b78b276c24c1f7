"""The arguments of definitions as JSON Schema."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NewType, Optional, TypedDict
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator

from taskqueue.declarations.argument_schema import argument_schema
from taskqueue.declarations.options import Options
from taskqueue.definitions import Definition


class Tone(Enum):
    WARM = "warm"
    COLD = "cold"


class Size(IntEnum):
    SMALL = 1


class Place(TypedDict, total=False):
    city: str
    zip: int


Customer = NewType("Customer", int)


def everything(
    item: int, note: str, *, price: float = 1.5, tone: Tone = Tone.WARM, size: Size = Size.SMALL,
    kind: Literal["a", 1, None] = "a", maybe: int | None = None, either: Optional[str] = None,  # noqa: UP045
    many: list[int] = [], pair: tuple[int, str] = (1, "a"), some: tuple[int, ...] = (),  # noqa: B006
    by_name: dict[str, float] = {}, seq: Sequence[str] = (), when: datetime | None = None,  # noqa: B006
    which: UUID | None = None, place: Place = {}, who: Customer = Customer(1),  # noqa: B006
    sure: Annotated[bool, "really"] = False, anything: Any = None, untyped=3,
) -> None:  # fmt: skip
    """Of each kind."""


def by_place(first: int, /, second: str = "b") -> None: ...
def with_rest(first: int, second: str = "b", *rest: float, last: int) -> None: ...
def with_extra(first: int, **extra: bool) -> None: ...
def with_context(context: Any, first: int) -> None: ...
def unresolved(first: NotThere) -> None: ...  # noqa: F821
def recursive(first: Nested) -> None: ...


Nested = list["Nested"]


def schema_of(body: Any, **options: Any) -> dict[str, Any]:
    """The schema, which is one."""
    schema = argument_schema(Definition(body, Options(**options)))
    Draft202012Validator.check_schema(schema)
    return schema


def test_each_annotation_is_told_as_json_has_it() -> None:
    found = schema_of(everything)["properties"]["kwargs"]
    properties = found["properties"]
    whole = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
    assert properties == {
        "item": whole,
        "note": {"type": "string"},
        "price": {"type": "number", "default": 1.5},
        "tone": {"enum": ["warm", "cold"], "default": "warm"},
        "size": {"enum": [1], "default": 1},
        "kind": {"enum": ["a", 1, None], "default": "a"},
        "maybe": {"anyOf": [whole, {"type": "null"}], "default": None},
        "either": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "many": {"type": "array", "items": whole, "default": []},
        "pair": {
            "type": "array", "prefixItems": [whole, {"type": "string"}], "minItems": 2,
            "maxItems": 2,
        },
        "some": {"type": "array", "items": whole},
        "by_name": {"type": "object", "additionalProperties": {"type": "number"}, "default": {}},
        "seq": {"type": "array", "items": {"type": "string"}},
        "when": {
            "anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}],
            "default": None,
        },
        "which": {
            "anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}], "default": None,
        },
        "place": {
            "type": "object", "properties": {"city": {"type": "string"}, "zip": whole},
            "additionalProperties": False, "default": {},
        },
        "who": {**whole, "default": 1},
        "sure": {"type": "boolean", "default": False},
        "anything": {"default": None},
        "untyped": {**whole, "default": 3},
    }  # fmt: skip
    assert found["required"] == ["item", "note"]
    assert found["additionalProperties"] is False


CALLS: list[tuple[Any, dict[str, Any], bool]] = [
    (by_place, {"args": [1]}, True),
    (by_place, {"args": [1], "kwargs": {"second": "c"}}, True),
    (by_place, {"args": []}, False),
    (by_place, {}, False),
    (by_place, {"kwargs": {"first": 1}}, False),
    (with_rest, {"args": [1, "b", 2.5, 3], "kwargs": {"last": 1}}, True),
    (with_rest, {"args": [1, "b", "c"], "kwargs": {"last": 1}}, False),
    (with_rest, {"args": [1]}, False),
    (with_extra, {"kwargs": {"first": 1, "more": True}}, True),
    (with_extra, {"kwargs": {"first": 1, "more": "yes"}}, False),
    (unresolved, {"kwargs": {"first": [None]}}, True),
    (recursive, {"kwargs": {"first": [[], [[]]]}}, True),
    (recursive, {"kwargs": {"first": 3}}, False),
]


@pytest.mark.parametrize(("body", "call", "fits"), CALLS)
def test_a_call_fits_the_schema_if_it_fits_the_body(
    body: Any, call: dict[str, Any], fits: bool
) -> None:
    assert Draft202012Validator(schema_of(body)).is_valid(call) == fits


def test_the_context_is_none_of_the_arguments() -> None:
    found = schema_of(with_context, takes_context=True)["properties"]["kwargs"]
    assert list(found["properties"]) == ["first"]


def test_a_sensitive_argument_is_write_only_and_its_default_hidden() -> None:
    def log_in(user: str, password: str = "hunter2", **more: Any) -> None: ...

    schema = schema_of(log_in, sensitive=frozenset({"password", "token"}))
    properties = schema["properties"]["kwargs"]["properties"]
    assert properties["password"] == {"type": "string", "writeOnly": True}
    assert properties["token"] == {"writeOnly": True}
    assert "hunter2" not in str(schema)
