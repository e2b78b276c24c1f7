"""Who may: each view names, for each method, the permissions that are all needed."""

from __future__ import annotations

import hmac
from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from taskqueue.conf import get_settings


class Needs(BasePermission):
    """Nothing is allowed that the view does not name; nobody who is not known."""

    def has_permission(self, request: Request, view: Any) -> bool:
        method = "GET" if request.method == "HEAD" else str(request.method)
        if method not in view.needs:
            # Who is known is told that there is no such method; who is not, is told nothing.
            return _is_known(request.user)
        return _is_known(request.user) and has_all(request.user, view.needs[method])


class NeedsOrToken(Needs):
    """The same, or the token of the setting METRICS_TOKEN as a bearer."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return holds_token(request) or super().has_permission(request, view)


def identity_of(user: Any) -> str | None:
    """Who it is, told apart from everybody else; None for somebody without a key of their own."""
    if not _is_known(user) or user.pk is None:
        return None
    kind = getattr(user, "_meta", None)
    label = type(user).__qualname__ if kind is None else kind.label_lower
    return f"{label}:{user.pk}"


def has_all(user: Any, permissions: tuple[str, ...]) -> bool:
    """Whether the user has all of these permissions."""
    return all(user.has_perm(each) for each in permissions)


def holds_token(request: Any) -> bool:
    """Whether the request bears the token for metrics, compared in constant time."""
    token = get_settings().METRICS_TOKEN
    scheme, _, given = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if not token or scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(given.strip().encode(), token.encode())


def _is_known(user: Any) -> bool:
    return bool(user is not None and user.is_authenticated)
