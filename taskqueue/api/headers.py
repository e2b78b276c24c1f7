"""Headers of requests: ETags, so that nobody overwrites a change that they have not seen, and
Idempotency-Key: a repeated request is carried out once.

A strong ETag is made of the JSON that is answered (RFC 9110, 8.8.3 and 13.1).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from django.utils.crypto import salted_hmac
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from taskqueue.access.roles import ADMINISTRATOR, APP
from taskqueue.access.users import identity_of
from taskqueue.api.problems import Problem
from taskqueue.engine.connections import project_connection
from taskqueue.engine.idempotency import Answer, first_answer, keep_answer
from taskqueue.models.idempotency import LONGEST_KEY


def etag_of(shown: Any, *, part: str = "") -> str:
    """Return the ETag of an answer; it begins with the `part` that If-Match compares."""
    digest = hashlib.sha256(_text(shown).encode()).hexdigest()[:32]
    return f'"{part}.{digest}"' if part else f'"{digest}"'


def part_of(values: Any) -> str:
    """Return the beginning of an ETag that represents these values.

    If other values change by themselves all the time, If-Match compares only this part. The values
    may be secret, so the digest is keyed: nobody can guess them by trying.
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
    """Return the ETags in a header; a proxy that compresses answers makes them weak."""
    return [tag.strip().removeprefix("W/") for tag in request.META.get(header, "").split(",")]


def _text(value: Any) -> str:
    return json.dumps(value, cls=JSONEncoder, sort_keys=True, separators=(",", ":"))


HEADER = "HTTP_IDEMPOTENCY_KEY"
KEPT_HEADERS = ("Location", "ETag")


def answered(request: Request, act: Callable[[], Response]) -> Response:
    """Return the answer to the first request with the key, or run the action and return its answer.

    A refusal leaves no trace of the key. Raises 400 for an invalid key, and `IdempotencyKeyReused`.
    """
    if HEADER not in request.META:
        return act()
    key, identity = request.META[HEADER], identity_of(request.user)
    if not 1 <= len(key) <= LONGEST_KEY or not (key.isascii() and key.isprintable()):
        raise _invalid_key(f"must be 1 to {LONGEST_KEY} printable ASCII characters.")
    if identity is None:
        raise _invalid_key("requires a user with a primary key.")
    connection, actor = project_connection(), hashlib.sha256(identity.encode()).hexdigest()
    first = first_answer(connection, actor=actor, key=key, fingerprint=_fingerprint(request))
    if first is not None:
        headers = {**first.headers, "Idempotency-Replayed": "true"}
        return Response(json.loads(first.body), status=first.status, headers=headers)
    response = act()
    headers = {name: response[name] for name in KEPT_HEADERS if name in response}
    # A secret is shown only once: neither the stored answer nor its copies contain it.
    body = json.dumps(getattr(response, "kept_data", response.data), cls=JSONEncoder)
    answer = Answer(status=response.status_code, headers=headers, body=body)
    keep_answer(connection, answer, actor=actor, key=key)
    return response


def _invalid_key(mistake: str) -> Problem:
    return Problem(400, "invalid_idempotency_key", f"Idempotency-Key {mistake}")


def _fingerprint(request: Request) -> str:
    """Return a digest of the request and of the permissions of its user."""
    digest = hashlib.sha256()
    known = (f"{APP}.{codename}" for codename in sorted(ADMINISTRATOR.permissions))
    held = [permission for permission in known if request.user.has_perm(permission)]
    for part in (str(request.method), request.get_full_path(), *held):
        digest.update(part.encode() + b"\0")
    digest.update(request._request.body)
    return digest.hexdigest()
