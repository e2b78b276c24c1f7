"""Probes of web processes, and metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_FIGURES
from taskqueue.api.access import NeedsOrToken, holds_token
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.problems import Problem
from taskqueue.monitoring import health
from taskqueue.monitoring.metrics import exposition


class HealthShown(serializers.Serializer[Any]):
    """A status without details: the probes are public."""

    status = serializers.ChoiceField(choices=[health.OK, health.UNAVAILABLE])


class Probe(ApiView):
    """Answers everybody, without authentication and throttles."""

    permission_classes: Any = (AllowAny,)
    throttle_classes: Any = ()
    tag = "health"
    look: ClassVar[Callable[[], health.Health]]

    def get_authenticators(self) -> list[Any]:
        """Return none: an unavailable database must not fail the authentication."""
        return []

    def answer(self, request: Request) -> Response:
        """Answer 200 or 503."""
        self.validated_query(request)
        found = type(self).look()
        return Response(HealthShown(found).data, status=200 if found.is_ok else 503)


class Live(Probe):
    """Whether this process answers."""

    look = health.live

    @describe("getLive", answers={200: HealthShown}, always=(400,))
    def get(self, request: Request) -> Response:
        """Whether this process answers at all. Touches no database."""
        return self.answer(request)


class Ready(Probe):
    """Whether this process can work."""

    look = health.ready

    @describe("getReady", answers={200: HealthShown, 503: HealthShown}, always=(400,))
    def get(self, request: Request) -> Response:
        """Whether the database answers, with taskqueue's migrations applied."""
        return self.answer(request)


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

    @describe("getMetrics", answers={200: str}, media_type="text/plain", problems=(501,))
    def get(self, request: Request) -> HttpResponse:
        """Metrics of the whole queue for Prometheus. Requires the permission, or the setting
        METRICS_TOKEN as a bearer token, and the extra `metrics` on the server: else 501.
        """
        self.validated_query(request)
        try:
            page, content_type = exposition(request.META.get("HTTP_ACCEPT", ""))
        except ImproperlyConfigured as error:
            raise Problem(501, "metrics_not_installed", str(error)) from None
        return HttpResponse(page, content_type=content_type)
