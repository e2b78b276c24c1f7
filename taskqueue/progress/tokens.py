"""Signed tokens: what somebody may see with them, and until when.

Anybody who has a token may use it, so a token always expires. Its holder can read it: it contains
the id of the task or workflow and nothing else about it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core import signing
from django.utils.http import url_has_allowed_host_and_scheme

from taskqueue.core.naming import shown
from taskqueue.core.retries import seconds_of

SALT = "taskqueue.progress"
LONGEST = timedelta(days=30)
LONGEST_REDIRECT = 500
LONGEST_TOKEN = 2000


class Expired(Exception):
    """The token is genuine, but has expired."""


class Unknown(Exception):
    """The token is not ours."""


@dataclass(frozen=True, kw_only=True)
class Claims:
    """The content of a token."""

    id: UUID
    is_workflow: bool
    # By the clock of the web server, in seconds since 1970.
    expires_at: int
    # The primary key of the only user who may look, as text; empty for any holder of the token.
    user: str = ""
    shows_result: bool = False
    # Where to redirect once it has succeeded: a path on the same host.
    redirect: str = ""

    def is_for(self, user: Any) -> bool:
        """Return whether this user may look."""
        if not self.user:
            return True
        return bool(user is not None and user.is_authenticated and str(user.pk) == self.user)


def expiry(seconds: float | timedelta) -> int:
    """Return when a token of this duration expires. Raises ValueError for one without an end."""
    try:
        lasts = seconds_of(seconds)
    except TypeError:
        lasts = 0.0
    if not 0 < lasts <= LONGEST.total_seconds():
        raise ValueError(
            f"expires must be more than 0 and at most {LONGEST.days} days, in seconds or as a "
            f"timedelta, not {seconds!r}."
        )
    return int(time.time() + lasts) + 1


def checked_redirect(path: str | None) -> str:
    """Return a path on the same host; empty for none. Raises ValueError for any other address."""
    if path is None or path == "":
        return ""
    is_path = isinstance(path, str) and path.startswith("/") and path.isprintable()
    is_here = is_path and url_has_allowed_host_and_scheme(path, allowed_hosts=None)
    if not is_here or len(path) > LONGEST_REDIRECT:
        raise ValueError(
            f"redirect must be a path on this host of at most {LONGEST_REDIRECT} characters, such "
            f"as '/exports/7/', not {shown(path)}."
        )
    return path


def signed(claims: Claims) -> str:
    """Return the token; keys rotate by SECRET_KEY_FALLBACKS."""
    values: list[Any] = [claims.id.hex, int(claims.is_workflow), claims.expires_at]
    values += [claims.user, int(claims.shows_result), claims.redirect]
    return signing.dumps(values, salt=SALT, compress=True)


def read(token: str) -> Claims:
    """Return the content of a token. Raises `Unknown`, and `Expired` after its time.

    A token without an expiry is not ours, whoever signed it.
    """
    if len(token) > LONGEST_TOKEN:
        raise Unknown
    try:
        known, is_workflow, expires_at, user, shows_result, redirect = signing.loads(
            token, salt=SALT
        )
        claims = Claims(
            id=UUID(hex=known), is_workflow=bool(is_workflow), expires_at=int(expires_at),
            user=str(user), shows_result=bool(shows_result), redirect=checked_redirect(redirect),
        )  # fmt: skip
    except (signing.BadSignature, ValueError, TypeError, AttributeError):
        raise Unknown from None
    if claims.expires_at <= time.time():
        raise Expired
    return claims
