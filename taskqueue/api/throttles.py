"""How often somebody may ask: a rate for each kind of request, from the settings."""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.throttling import SimpleRateThrottle

from taskqueue.api.access import holds_token, identity_of
from taskqueue.conf import get_settings

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
