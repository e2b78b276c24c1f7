"""Who may ask, and how often: permissions by method, and a rate for each kind of request."""

from __future__ import annotations

import hashlib
import hmac
import logging
from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.throttling import SimpleRateThrottle

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


logger = logging.getLogger("taskqueue.api")


class Rates(SimpleRateThrottle):
    """Counts by user, else by address, in the project's cache; refuses with 429 and Retry-After.

    The scopes are `read`, `act` and `enqueue`: a view names one for what it changes. Whoever is not
    known is `anonymous` whatever they ask for, so that nobody guesses passwords here all day.
    While the cache is away nothing is counted, and everybody passes: the queue needs no cache.
    """

    def __init__(self) -> None:
        # The rate is known once the view is: see `allow_request`.
        pass

    def allow_request(self, request: Request, view: Any) -> bool:
        is_reading = request.method in ("GET", "HEAD", "OPTIONS")
        self.scope = "read" if is_reading else view.scope
        self._who = "token" if holds_token(request) else identity_of(request.user)
        if self._who is None:
            self.scope = "anonymous"
        self.rate = get_settings().API_THROTTLE_RATES.get(self.scope)
        if self.rate is None:
            return True
        self.num_requests, self.duration = self.parse_rate(self.rate)
        try:
            return bool(super().allow_request(request, view))
        except Exception as error:  # Each kind of cache has its own.
            logger.warning("The cache failed, and nothing is throttled error=%r", error)
            return True

    def get_ident(self, request: Request) -> str:
        """The address. X-Forwarded-For counts where the project says how many proxies write it.

        Without NUM_PROXIES, all of the header would count: with another one each time, nobody
        would ever be refused.
        """
        if api_settings.NUM_PROXIES is None:
            return request.META.get("REMOTE_ADDR") or ""
        return super().get_ident(request) or ""

    def get_cache_key(self, request: Request, view: Any) -> str:
        # Hashed: caches have keys without spaces, and not any length.
        # Behind a socket of Unix nobody has an address, and all share one count.
        address = self._who or self.get_ident(request)
        who = hashlib.sha256(address.encode()).hexdigest()[:32]
        return f"taskqueue_throttle_{self.scope}_{who}"
