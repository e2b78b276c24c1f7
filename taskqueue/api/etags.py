"""ETags: of what an answer shows, so that somebody else's change is not overwritten unseen.

A strong ETag is made of the JSON that is answered (RFC 9110, 8.8.3 and 13.1).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from rest_framework.request import Request
from rest_framework.utils.encoders import JSONEncoder

from taskqueue.api.problems import Problem


def etag_of(shown: Any) -> str:
    """The ETag of what is shown."""
    text = json.dumps(shown, cls=JSONEncoder, sort_keys=True, separators=(",", ":"))
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


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


def _names(header: str, etag: str, *, is_weak_enough: bool) -> bool:
    for each in header.split(","):
        given = each.strip()
        if given == "*" or given == etag:
            return True
        if is_weak_enough and given.removeprefix("W/") == etag:
            return True
    return False
