"""ETags of answers, so that nobody overwrites a change that they have not seen.

A strong ETag is made of the JSON that is answered (RFC 9110, 8.8.3 and 13.1).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.utils.crypto import salted_hmac
from rest_framework.request import Request
from rest_framework.utils.encoders import JSONEncoder


def etag_of(shown: Any, *, part: str = "") -> str:
    """Return the ETag of an answer; it begins with the `part` that If-Match compares."""
    digest = hashlib.sha256(_text(shown).encode()).hexdigest()[:32]
    return f'"{part}.{digest}"' if part else f'"{digest}"'


def part_of(values: Any) -> str:
    """Return the beginning of an ETag that stands for these values.

    Of what changes by itself all the time, If-Match looks at this part alone. Values may be
    secret: keyed, it lets nobody try out what they are.
    """
    return salted_hmac(__name__, _text(values), algorithm="sha256").hexdigest()[:16]


def is_known(request: Request, etag: str) -> bool:
    """Whether If-None-Match names this ETag."""
    known = _tags(request, "HTTP_IF_NONE_MATCH")
    return "*" in known or etag in known


def has_condition(request: Request) -> bool:
    """Whether the request has If-Match."""
    return "HTTP_IF_MATCH" in request.META


def has_part(request: Request, part: str) -> bool:
    """Whether If-Match names an ETag that begins with this part."""
    return any(tag == "*" or tag.startswith(f'"{part}.') for tag in _tags(request, "HTTP_IF_MATCH"))


def _tags(request: Request, header: str) -> list[str]:
    """The ETags in a header; a proxy that compresses answers makes them weak."""
    return [tag.strip().removeprefix("W/") for tag in request.META.get(header, "").split(",")]


def _text(value: Any) -> str:
    return json.dumps(value, cls=JSONEncoder, sort_keys=True, separators=(",", ":"))
