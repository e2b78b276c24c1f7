"""Probes of web processes, and metrics for Prometheus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_FIGURES
from taskqueue.api.access import NeedsOrToken, holds_token
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.problems import Problem
from taskqueue.monitoring import health
from taskqueue.monitoring.metrics import exposition
from taskqueue.monitoring.read_models.base import about, json_form


@dataclass(frozen=True, kw_only=True)
class HealthShown:
    """A status without details: the probes are public."""

    status: str = about(choices=[health.OK, health.UNAVAILABLE])


class Probe(ApiView):
    """Answers everybody, without authentication and throttles."""

    permission_classes: Any = (AllowAny,)
    throttle_classes: Any = ()
    tag = "health"

    def get_authenticators(self) -> list[Any]:
        """Return none: an unavailable database must not fail the authentication."""
        return []

    def answer(self, found: health.Health) -> Response:
        """Answer 200 or 503."""
        shown = HealthShown(status=found.status)
        return Response(json_form(shown), status=200 if found.is_ok else 503)


class Live(Probe):
    """Whether this process answers."""

    @endpoint("getLive", answers={200: HealthShown})
    def get(self, request: Request) -> Response:
        """Whether this process answers at all. Touches no database."""
        return self.answer(health.live())


class Ready(Probe):
    """Whether this process can work."""

    @endpoint("getReady", answers={200: HealthShown, 503: HealthShown})
    def get(self, request: Request) -> Response:
        """Whether the database answers, with taskqueue's migrations applied."""
        return self.answer(health.ready())


class Metrics(ApiView):
    """Metrics for Prometheus."""

    needs = {"GET": (VIEW_FIGURES,)}
    permission_classes = (NeedsOrToken,)
    tag = "health"

    def get_authenticators(self) -> list[Any]:
        """Return none for a request with the token: other bearer authenticators would refuse it."""
        request: Any = self.request  # None while the document is made.
        bears_token = request is not None and holds_token(request)
        return [] if bears_token else super().get_authenticators()

    @endpoint("getMetrics", answers={200: str}, problems=(501,))
    def get(self, request: Request) -> HttpResponse:
        """Metrics of the whole queue for Prometheus. Requires the permission, or the setting
        METRICS_TOKEN as a bearer token, and the extra `metrics` on the server: else 501.
        """
        try:
            page, content_type = exposition(request.META.get("HTTP_ACCEPT", ""))
        except ImproperlyConfigured as error:
            raise Problem(501, "metrics_not_installed", str(error)) from None
        return HttpResponse(page, content_type=content_type)
