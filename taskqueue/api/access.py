"""Access to the API: permissions by method, and a rate limit for each kind of request."""

from __future__ import annotations

import hashlib
import hmac
import logging
from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.throttling import SimpleRateThrottle

from taskqueue.access.lacking import lacking
from taskqueue.access.users import identity_of, is_known
from taskqueue.conf import get_settings


class Needs(BasePermission):
    """Requires an authenticated user with the permissions that the view names for the method."""

    def has_permission(self, request: Request, view: Any) -> bool:
        method = "GET" if request.method == "HEAD" else str(request.method)
        # For a method that the view lacks, authenticated users get 405; others get nothing.
        needed = view.needs.get(method, ())
        if not is_known(request.user):
            return False
        self.message = lacking(request.user, needed)
        return not self.message


class NeedsOrToken(Needs):
    """Requires the permissions of `Needs`, or the setting METRICS_TOKEN as a bearer token."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return holds_token(request) or super().has_permission(request, view)


def holds_token(request: Any) -> bool:
    """Whether the request has the token for metrics, compared in constant time."""
    token = get_settings().METRICS_TOKEN
    scheme, _, bearer = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if not token or scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(bearer.strip().encode(), token.encode())


logger = logging.getLogger("taskqueue.api")


class Rates(SimpleRateThrottle):
    """Limits requests by user or address in the project's cache, with 429 and Retry-After.

    The scopes are `read`, `act` and `enqueue`: a view names the scope of its changes. Requests of
    unknown users have the scope `anonymous`, which makes guessing passwords harder. If the cache is
    not available, nobody is refused, because the queue needs no cache.
    """

    def __init__(self) -> None:
        # `allow_request` sets the rate, once the view is known.
        pass

    def allow_request(self, request: Request, view: Any) -> bool:
        self.scope = "read" if request.method in ("GET", "HEAD", "OPTIONS") else view.scope
        self._who = "token" if holds_token(request) else identity_of(request.user)
        if self._who is None:
            self.scope = "anonymous"
        self.rate = get_settings().API_THROTTLE_RATES.get(self.scope)
        if self.rate is None:
            return True
        self.num_requests, self.duration = self.parse_rate(self.rate)
        try:
            return bool(super().allow_request(request, view))
        except Exception as error:  # Each kind of cache has its own errors.
            logger.warning("The cache failed, requests are not throttled error=%r", error)
            return True

    def get_ident(self, request: Request) -> str:
        """Return the client's address, from X-Forwarded-For if NUM_PROXIES is set.

        Without NUM_PROXIES, DRF would use the whole header, which a client can change each time.
        """
        if api_settings.NUM_PROXIES is None:
            return request.META.get("REMOTE_ADDR") or ""
        return super().get_ident(request) or ""

    def get_cache_key(self, request: Request, view: Any) -> str:
        # Hashed: cache keys have no spaces and a limited length. Behind a Unix socket no client has
        # an address, and all share one count.
        address = self._who or self.get_ident(request)
        who = hashlib.sha256(address.encode()).hexdigest()[:32]
        return f"taskqueue_throttle_{self.scope}_{who}"
