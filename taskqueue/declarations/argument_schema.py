"""The arguments of a definition as JSON Schema (2020-12), made from the signature of its body."""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Collection, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict
from uuid import UUID

from taskqueue.declarations.annotations import hints_of, kind_of
from taskqueue.declarations.argument_kinds import Member
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.parameters import EMPTY, VARIABLE, goes_by_place
from taskqueue.declarations.payload import LARGEST_INTEGER
from taskqueue.declarations.workflows.workflow import BaseWorkflow

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Types may name themselves; from here on anything will do.
DEEPEST = 8
Schema = dict[str, Any]
INTEGER: Schema = {"type": "integer", "minimum": -LARGEST_INTEGER, "maximum": LARGEST_INTEGER - 1}
PLAIN: dict[Any, Schema] = {
    bool: {"type": "boolean"},
    int: INTEGER,
    float: {"type": "number"},
    str: {"type": "string"},
    bytes: {"type": "string"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    time: {"type": "string", "format": "time"},
    timedelta: {"type": "string", "format": "duration"},
    Decimal: {"type": "string", "pattern": r"^[+-]?[0-9]+(\.[0-9]+)?$"},
    UUID: {"type": "string", "format": "uuid"},
}


def argument_schema(definition: BaseDefinition[Any, Any] | BaseWorkflow) -> Schema:
    """Return the schema of an object with `args`, a list, and `kwargs`, an object.

    Each argument stands in `kwargs` by its name, but for those that have to be given by their
    place: positional-only ones, and all that stand before `*args`. Python takes more than that:
    an argument that has a name may also be given by its place.
    """
    found = inspect.signature(definition.body).parameters
    hints, sensitive = hints_of(definition.body), definition.options.sensitive
    listed = [found[name] for name in definition.signature.names]
    schemas = {each.name: _of(each, hints.get(each.name, EMPTY), sensitive) for each in listed}
    rest, extra = (next((e for e in listed if e.kind is kind), None) for kind in VARIABLE)
    by_place = [each for each in listed if goes_by_place(each.kind, rest is not None)]
    by_name = [each for each in listed if each.kind not in VARIABLE and each not in by_place]
    args = _list(
        [schemas[each.name] for each in by_place],
        least=sum(each.default is EMPTY for each in by_place),
        items=schemas[rest.name] if rest else False,
    )
    kwargs = _object(
        {each.name: schemas[each.name] for each in by_name}
        | {name: {"writeOnly": True} for name in sorted(sensitive - set(schemas))},
        required=[each.name for each in by_name if each.default is EMPTY],
        more=schemas[extra.name] if extra else False,
    )
    needed = [("args", "minItems" in args), ("kwargs", "required" in kwargs)]
    return {
        "$schema": DIALECT,
        **_object(
            {"args": args, "kwargs": kwargs},
            required=[name for name, is_needed in needed if is_needed],
            more=False,
        ),
    }


def _of(parameter: inspect.Parameter, hint: Any, sensitive: Collection[str]) -> Schema:
    """Return the schema of a parameter: type, default if JSON has it, and whether it is hidden."""
    if parameter.name in sensitive:
        return {**_type(hint, 0), "writeOnly": True}
    default = parameter.default
    if hint is EMPTY and type(default) in (bool, int, float, str):
        hint = type(default)
    schema = _type(hint, 0)
    if default is EMPTY:
        return schema
    kind = kind_of(hint)
    value = kind.stored[default] if isinstance(kind, Member) else default
    return {**schema, "default": value} if _is_json(value) else schema


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False


def _type(hint: Any, depth: int) -> Schema:
    """Return the schema of an annotation; it allows anything if JSON Schema cannot express it."""
    if depth > DEEPEST or hint is EMPTY:
        return {}
    if isinstance(hint, type | types.NoneType) and hint in PLAIN:
        return dict(PLAIN[hint])
    alias = getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None)
    if alias is not None:  # A NewType, or a name that is declared by `type`.
        return _type(alias, depth + 1)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _type(inner[0], depth + 1)
    if origin in (Union, types.UnionType):
        return _any_of([_type(each, depth + 1) for each in inner])
    if origin is Literal:
        return _enum(inner)
    if isinstance(kind := kind_of(hint), Member):
        return _enum(kind.stored.values())
    if is_typeddict(hint):
        return _typed_dict(hint, depth)
    if isinstance(hint, type) and is_dataclass(hint):
        return _dataclass(hint, depth)
    return _container(origin if isinstance(origin, type) else hint, inner, depth)


def _container(plain: Any, inner: tuple[Any, ...], depth: int) -> Schema:
    if not isinstance(plain, type) or issubclass(plain, str | bytes):
        return {}
    if issubclass(plain, Mapping):
        values = _type(inner[1], depth + 1) if len(inner) == 2 else {}
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    if issubclass(plain, tuple) and inner and inner[-1] is not Ellipsis:
        each = [_type(hint, depth + 1) for hint in inner]
        return _list(each, least=len(each), items=False)
    if issubclass(plain, Iterable):
        items = _type(inner[0], depth + 1) if inner else {}
        return {"type": "array", **({"items": items} if items else {})}
    return {}


def _typed_dict(hint: Any, depth: int) -> Schema:
    fields = {name: _type(each, depth + 1) for name, each in hints_of(hint).items()}
    return _object(fields, required=sorted(hint.__required_keys__), more=False)


def _dataclass(hint: Any, depth: int) -> Schema:
    hints = hints_of(hint)
    listed = [field for field in fields(hint) if field.init]
    return _object(
        {field.name: _type(hints.get(field.name, EMPTY), depth + 1) for field in listed},
        required=[
            field.name
            for field in listed
            if field.default is MISSING and field.default_factory is MISSING
        ],
        more=False,
    )


def _any_of(schemas: list[Schema]) -> Schema:
    """Return the union of the schemas, each once; anything if one of them allows anything."""
    if {} in schemas:
        return {}
    different = [each for number, each in enumerate(schemas) if each not in schemas[:number]]
    return different[0] if len(different) == 1 else {"anyOf": different}


def _enum(values: Iterable[Any]) -> Schema:
    listed = list(values)
    return {"enum": listed} if all(map(_is_json, listed)) else {}


def _list(places: list[Schema], *, least: int, items: Schema | bool) -> Schema:
    schema: Schema = {"type": "array"}
    if places:
        schema["prefixItems"] = places
    if least:
        schema["minItems"] = least
    if items is False:
        schema["maxItems"] = len(places)
    elif items:
        schema["items"] = items
    return schema


def _object(fields: dict[str, Schema], *, required: list[str], more: Schema | bool) -> Schema:
    schema: Schema = {"type": "object", "properties": fields}
    if required:
        schema["required"] = required
    if more != {}:
        schema["additionalProperties"] = more
    return schema
