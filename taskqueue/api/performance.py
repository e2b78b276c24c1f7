"""How long tasks of each name take, and how many fail."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_FIGURES
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.fields import Strict
from taskqueue.api.paging import Digits
from taskqueue.monitoring.performance import performance
from taskqueue.monitoring.series import SPANS

MOST_NAMES = 1000


class PerformanceQuery(Strict):
    """Of which span."""

    span = serializers.ChoiceField(choices=list(SPANS), required=False, default="hour")
    limit = Digits(
        required=False, default=100, min_value=1, max_value=MOST_NAMES, help_text="Names."
    )


class NameShown(serializers.Serializer[Any]):
    """Attempts at tasks of one name; durations in seconds."""

    name = serializers.CharField()
    count = serializers.IntegerField()
    failed = serializers.IntegerField(help_text="Those that failed or were lost.")
    failure_rate = serializers.FloatField(help_text="From 0 to 1.")
    run_p50 = serializers.FloatField(allow_null=True)
    run_p95 = serializers.FloatField(allow_null=True)
    wait_p50 = serializers.FloatField(allow_null=True)
    wait_p95 = serializers.FloatField(allow_null=True)
    slowest_seconds = serializers.FloatField()
    slowest_task_id = serializers.UUIDField(
        allow_null=True, help_text="It may have been pruned since."
    )


class PerformanceShown(serializers.Serializer[Any]):
    """The names, the most frequent first."""

    span = serializers.ChoiceField(choices=list(SPANS))
    names = NameShown(many=True)
    is_capped = serializers.BooleanField(help_text="Whether there are more names.")


class Performance(ApiView):
    """Each name by itself."""

    needs = {"GET": (VIEW_FIGURES,)}
    tag = "stats"

    @describe("getPerformance", answers={200: PerformanceShown}, query=PerformanceQuery)
    def get(self, request: Request) -> Response:
        """How often tasks of each name ran within the span, how long, and how many failed."""
        asked = self.validated_query(request, PerformanceQuery)
        found = performance(asked["span"])
        kept = found[: asked["limit"]]
        return Response(
            {
                "span": asked["span"],
                "names": [asdict(each) for each in kept],
                "is_capped": len(found) > len(kept),
            }
        )
