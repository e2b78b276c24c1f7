"""Serializers made from read models: DRF answers with them, and drf-spectacular describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import datetime, timedelta
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

from rest_framework import serializers

from taskqueue.api.fields import Anything
from taskqueue.monitoring.read_models.base import json_fields_of, json_form

AnyField = serializers.Field[Any, Any, Any, Any]
NOTHING: Mapping[str, Any] = {}
PLAIN: dict[Any, type[AnyField]] = {
    str: serializers.CharField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
    bool: serializers.BooleanField,
    datetime: serializers.DateTimeField,
    timedelta: serializers.FloatField,
    UUID: serializers.UUIDField,
}
_MADE: dict[tuple[type[Any], frozenset[str]], type[ReadModelSerializer]] = {}


class ReadModelSerializer(serializers.Serializer[Any]):
    """Serializes a read model, in the JSON form that the CLI and exports have too."""

    def to_representation(self, instance: Any) -> Any:
        return json_form(instance)


def serializer_for(
    model: type[Any],
    *,
    optional: frozenset[str] = frozenset(),
    described: Mapping[str, type[AnyField]] = NOTHING,
) -> type[ReadModelSerializer]:
    """Make the serializer of a read model.

    `optional` fields may be missing in what it shows; `described` names fields of DRF that have a
    schema of their own.
    """
    if (model, optional) in _MADE:
        return _MADE[model, optional]
    hints = get_type_hints(model)
    members: dict[str, Any] = {"__doc__": model.__doc__}
    for name, field in json_fields_of(model).items():
        options: dict[str, Any] = {"required": False} if name in optional else {}
        if name in described:
            options["own"] = described[name]
        members[name] = _field(hints[name], field.metadata, **options)
    made = type(model.__name__.removeprefix("Shown"), (ReadModelSerializer,), members)
    _MADE[model, optional] = made
    return made


def _field(
    hint: Any, metadata: Mapping[str, Any], own: type[AnyField] | None = None, **options: Any
) -> AnyField:
    if text := metadata.get("help_text"):
        options["help_text"] = text
    if isinstance(hint, UnionType):
        (hint,) = set(get_args(hint)) - {NoneType}
        options["allow_null"] = True
    origin, arguments = get_origin(hint), get_args(hint)
    if own is not None:
        return own(**options)
    if is_dataclass(hint):
        return serializer_for(hint)(**options)  # type: ignore[arg-type]
    if origin is list and is_dataclass(arguments[0]):
        return serializer_for(arguments[0])(many=True, **options)  # type: ignore[arg-type]
    choices = {"choices": metadata["choices"]} if metadata.get("choices") else {}
    if origin is list:
        return serializers.ListField(child=_item(arguments[0], choices), **options)
    if origin is dict:
        return serializers.DictField(child=_item(arguments[1], {}), **options)
    if hint is Any:
        return _item(hint, options)
    if choices:
        return serializers.ChoiceField(**choices, **options)
    return PLAIN[hint](**options)


def _item(hint: Any, options: Mapping[str, Any]) -> AnyField:
    return Anything(allow_null=True, **options) if hint is Any else _field(hint, options)
