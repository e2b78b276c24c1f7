"""Parse bodies as strict JSON (RFC 8259), without Python's extensions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from django.utils import translation
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request


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
