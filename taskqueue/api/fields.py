"""Strict parsing: JSON (RFC 8259) without Python's extensions, no unknown fields, no silent
conversions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC
from typing import Any, ClassVar, NoReturn

from django.utils import translation
from django.utils.dateparse import parse_datetime
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from taskqueue.core.suggestions import did_you_mean_option
from taskqueue.declarations.payload import LARGEST_INTEGER
from taskqueue.engine.control.filters import is_storable
from taskqueue.exceptions import LONGEST_DURATION

MOMENT = {"type": "string", "format": "date-time"}
# The most unknown fields that are reported.
MOST_UNKNOWN = 5


class Strict(serializers.Serializer[Any]):
    """Refuses unknown fields, and suggests the closest known ones."""

    # Messages for fields that no request can set, by name.
    set_elsewhere: ClassVar[Mapping[str, str]] = {}

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = [name for name, field in self.fields.items() if not field.read_only]
            # The closest name is searched only a few times, because a client may send thousands.
            if unknown := [name for name in data if name not in known][:MOST_UNKNOWN]:
                told = {name: [self._unknown(name, known)] for name in unknown}
                raise serializers.ValidationError(told, code="unknown")
        return super().to_internal_value(data)

    def _unknown(self, name: str, known: list[str]) -> serializers.ErrorDetail:
        if told := self.set_elsewhere.get(name):
            return serializers.ErrorDetail(told, code="unknown")
        hint = did_you_mean_option(name, known)
        return serializers.ErrorDetail(f"Unknown field.{hint}", code="unknown")


class NoQuery(Strict):
    """No parameters."""


class Text(serializers.CharField):
    """Text without NUL and lone surrogates, unstripped."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        if not is_storable(data):
            raise serializers.ValidationError("Contains a NUL character or a lone surrogate.")
        return super().to_internal_value(data)


class Whole(serializers.IntegerField):
    """A JSON number without a fraction."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("min_value", -LARGEST_INTEGER)
        options.setdefault("max_value", LARGEST_INTEGER - 1)
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:
            self.fail("invalid")
        return super().to_internal_value(data)


class Flag(serializers.BooleanField):
    """true or false of JSON."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Moment(serializers.DateTimeField):
    """A time with an offset, such as 2026-01-31T12:00:00Z."""

    described: ClassVar[str] = "a time with an offset, such as 2026-01-31T12:00:00Z"

    def to_internal_value(self, value: Any) -> Any:
        if not isinstance(value, str):
            self.fail("invalid", format="ISO 8601 with an offset")
        with suppress(ValueError, OverflowError):
            moment = parse_datetime(value)
            if moment is not None and moment.tzinfo is not None:
                return moment.astimezone(UTC)
        raise serializers.ValidationError(f"Must be {self.described}.", code="invalid")


class MomentAmongSeconds(Moment):
    """A time with an offset, where seconds from now are allowed too."""

    described = f"{Moment.described}, or a number of seconds from now"


class Seconds(serializers.FloatField):
    """A duration in seconds."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("min_value", 0)
        options.setdefault("max_value", LONGEST_DURATION)
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> float:
        if type(data) not in (int, float):
            self.fail("invalid")
        return super().to_internal_value(data)


class DescribedField(serializers.Field[Any, Any, Any, Any]):
    """A field of requests of which no field of DRF gives the JSON Schema."""

    # In terms that OpenAPI 3.0 has too, because a project may document all of its addresses with
    # it.
    json_schema: ClassVar[dict[str, Any]]


class OneOf(serializers.Field[Any, Any, Any, Any]):
    """A value of one of several types, for each of which there is a field."""

    # Values of none of these types are passed to the last field.
    by_type: ClassVar[Mapping[type, serializers.Field[Any, Any, Any, Any]]]

    def to_internal_value(self, data: Any) -> Any:
        *_, last = self.by_type.values()
        return self.by_type.get(type(data), last).run_validation(data)


class When(OneOf):
    """A time with an offset, or seconds from now."""

    by_type = {str: MomentAmongSeconds(), float: Seconds()}


class Anything(serializers.JSONField):
    """Any JSON value."""


class Reasoned(Strict):
    """The field of every action."""

    reason = Text(
        required=False,
        default="",
        allow_blank=True,
        max_length=1000,
        help_text="The reason, for the audit.",
    )


class StrictJSONParser(BaseParser):
    """Refuses duplicate keys, NaN and the infinities, and what is not UTF-8."""

    media_type = "application/json"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the value. Raises `ParseError`, or `RequestDataTooBig` beyond Django's limit."""
        # Django's request bounds what its `body` reads, and not what is read from the stream.
        raw = stream.body if hasattr(stream, "body") else stream.read()
        try:
            return json.loads(
                raw.decode("utf-8"), object_pairs_hook=_without_duplicates, parse_constant=_refuse
            )
        except UnicodeDecodeError:
            raise ParseError("The body is not UTF-8.") from None
        except RecursionError:
            raise ParseError("The body is nested too deeply.") from None
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {error}") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ParseError(f"The key {name!r} appears twice in one object.", code="duplicate_key")
        found[name] = value
    return found


def _refuse(constant: str) -> NoReturn:
    raise ParseError(f"{constant} is not a JSON number.")


class PlainJSONRenderer(JSONRenderer):
    """Renders JSON in a stable form, of which ETags are made."""

    charset = None
    ensure_ascii = False
    strict = True

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Return the JSON, with lazy texts in English."""
        with translation.override("en"):
            return super().render(*args, **kwargs)


class AlwaysJSON(BaseContentNegotiation):
    """Answers with JSON, whatever the client accepts."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """Return the parser of the media type; None becomes 415."""
        given = (request.content_type or "").partition(";")[0].strip().lower()
        return next((each for each in parsers if each.media_type == given), None)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        """Return the only renderer."""
        return renderers[0], renderers[0].media_type
