"""ETags: of what an answer shows, so that somebody else's change is not overwritten unseen.

A strong ETag is made of the JSON that is answered (RFC 9110, 8.8.3 and 13.1).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from django.utils.crypto import salted_hmac
from rest_framework.request import Request
from rest_framework.utils.encoders import JSONEncoder

from taskqueue.api.problems import Problem
from taskqueue.engine.control.locking import Seen


def etag_of(shown: Any, *, part: str = "") -> str:
    """The ETag of what is shown; it begins with the `part` that stands for what people change."""
    digest = _digest(shown)[:32]
    return f'"{part}.{digest}"' if part else f'"{digest}"'


def part_of(values: Any) -> str:
    """What an ETag begins with that stands for these values.

    Of what changes by itself all the time, If-Match looks at this part alone. Values may be
    secret: keyed, it lets nobody try out what they are.
    """
    return salted_hmac(__name__, _text(values), algorithm="sha256").hexdigest()[:16]


def is_known(request: Request, etag: str) -> bool:
    """Whether the client says that it has this already."""
    return _names(request.META.get("HTTP_IF_NONE_MATCH", ""), etag, is_weak_enough=True)


def has_condition(request: Request) -> bool:
    """Whether the request is only meant for what the client has seen."""
    return "HTTP_IF_MATCH" in request.META


def check_match(request: Request, etag: str) -> None:
    """Raise 412 unless what is there is what the client has seen, or it did not ask."""
    if has_condition(request) and not _names(
        request.META["HTTP_IF_MATCH"], etag, is_weak_enough=False
    ):
        raise Problem(412, "precondition_failed", "It has changed since you have seen it.")


def _has_part(request: Request, part: str) -> bool:
    given = [each.strip().removeprefix("W/") for each in request.META["HTTP_IF_MATCH"].split(",")]
    return any(each == "*" or each.startswith(f'"{part}.') for each in given)


def seen_as(request: Request, part: Callable[[Any], str]) -> Seen:
    """Return a test of whether a row is what If-Match names; None where nothing is asked.

    `part` gives the part of the ETag that stands for what people change of the row.
    """
    if not has_condition(request):
        return None
    return lambda row: _has_part(request, part(row))


def _names(header: str, etag: str, *, is_weak_enough: bool) -> bool:
    for each in header.split(","):
        given = each.strip()
        if given == "*" or given == etag:
            return True
        if is_weak_enough and given.removeprefix("W/") == etag:
            return True
    return False


def _digest(value: Any) -> str:
    return hashlib.sha256(_text(value).encode()).hexdigest()


def _text(value: Any) -> str:
    return json.dumps(value, cls=JSONEncoder, sort_keys=True, separators=(",", ":"))
