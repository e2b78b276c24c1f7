"""Rate limits of progress requests by address."""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from django.http import HttpRequest
from rest_framework.settings import api_settings
from rest_framework.throttling import SimpleRateThrottle

logger = logging.getLogger("taskqueue.progress")


class LookRate(SimpleRateThrottle):
    """Ten requests a second for each address, counted in the project's cache.

    If the cache is not available, nobody is refused.
    """

    rate = "10/second"

    def may(self, request: HttpRequest) -> bool:
        """Return whether the client may look now, and count the look."""
        try:
            return bool(self.allow_request(request, None))  # type: ignore[arg-type]
        except Exception as error:  # Each kind of cache has its own errors.
            logger.warning("The cache failed, looks are not throttled error=%r", error)
            return True

    def get_cache_key(self, request: Any, view: Any) -> str:
        """By the client's address; by X-Forwarded-For only where NUM_PROXIES says so."""
        address = request.META.get("REMOTE_ADDR") or ""
        if api_settings.NUM_PROXIES is not None:
            address = self.get_ident(request) or ""
        return f"taskqueue_progress_{hashlib.sha256(address.encode()).hexdigest()[:32]}"
