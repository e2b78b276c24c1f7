"""Kinds of arguments from annotations: values that are accepted, and values for the body.

| annotation | stored as |
| --- | --- |
| `datetime`, `date`, `time` | text in ISO 8601 |
| `timedelta` | text in ISO 8601, such as `P1DT02H00M00S` |
| `Decimal`, `UUID` | its text |
| a class of `Enum` | the value of the member; its name where JSON lacks one of the values |
| a dataclass | an object of its fields |
| a model | the primary key |

Each may also be given in its stored form, so that REST, the command line and forms make the same
calls. All other annotations admit any JSON value.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import (
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from uuid import UUID

from django.db.models import Model
from django.utils.dateparse import parse_duration
from django.utils.duration import duration_iso_string

from taskqueue.declarations.argument_kinds import Kind, Member, OneOf, Plain, Text
from taskqueue.declarations.compound_kinds import Either, Fields, Items, Row, Values

# Types may name themselves; from here on anything will do.
DEEPEST = 8
NULL = Plain("None", type(None))
PLAIN: dict[Any, Kind] = {
    bool: Plain("bool", bool),
    int: Plain("int", int),
    # Whole numbers are numbers too, as for type checkers.
    float: Plain("float", float, int, exact=(float, int)),
    # UTF-8 bytes come back as text.
    str: Plain("str", str, bytes),
    bytes: Plain("bytes", bytes, str),
    type(None): NULL,
    datetime: Text(datetime, datetime.fromisoformat, datetime.isoformat),
    date: Text(date, date.fromisoformat, date.isoformat),
    time: Text(time, time.fromisoformat, time.isoformat),
    timedelta: Text(timedelta, parse_duration, duration_iso_string),
    Decimal: Text(Decimal, Decimal),
    UUID: Text(UUID, UUID),
}


def kind_of(hint: Any, depth: int = 0) -> Kind | None:
    """Return the kind of an annotation; None if it admits anything, or is not supported."""
    if depth > DEEPEST:
        return None
    hint = type(None) if hint is None and depth else hint
    if isinstance(hint, type) and hint in PLAIN:
        return PLAIN[hint]
    alias = getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None)
    if alias is not None:  # A NewType, or a name that is declared by `type`.
        return kind_of(alias, depth + 1)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return kind_of(inner[0], depth + 1)
    if origin in (Union, types.UnionType):
        kinds = [kind_of(each, depth + 1) for each in inner]
        known = [kind for kind in kinds if kind is not None]
        return Either(known) if len(known) == len(kinds) else None
    if origin is Literal:
        return OneOf(inner)
    plain = origin if isinstance(origin, type) else hint
    return _of_class(plain, inner, depth) if isinstance(plain, type) else None


def _of_class(plain: type, inner: tuple[Any, ...], depth: int) -> Kind | None:
    if issubclass(plain, Enum) and len(plain):
        return Member(plain)
    if issubclass(plain, Model):
        return None if plain._meta.abstract else Row(plain)
    if dataclasses.is_dataclass(plain):
        return Fields(plain, lambda: _kinds_of_fields(plain, depth + 1))
    if is_typeddict(plain) or plain is object:
        return None
    if plain in (list, tuple, Sequence):
        if plain is tuple and inner and inner[-1] is not Ellipsis:
            return Items(None, [kind_of(each, depth + 1) for each in inner])
        return Items(kind_of(inner[0], depth + 1) if inner else None)
    if plain in (dict, Mapping):
        return Values(kind_of(inner[1], depth + 1) if len(inner) == 2 else None)
    return None


def _kinds_of_fields(made: Any, depth: int) -> dict[str, Kind | None]:
    hints = hints_of(made)
    return {
        field.name: kind_of(hints.get(field.name), depth)
        for field in dataclasses.fields(made)
        if field.init
    }


def hints_of(body: Any) -> dict[str, Any]:
    """Return the annotations, resolved; none if one of them cannot be resolved."""
    try:
        return get_type_hints(body)
    except Exception:  # Annotations may name what is only there for a type checker.
        return {}
