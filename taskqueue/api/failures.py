"""Tasks that failed lately or wait for a retry, in groups that an operation can act on."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.fields import Strict
from taskqueue.api.paging import Digits
from taskqueue.api.serializing import serializer_for
from taskqueue.monitoring.read_models.failure_group import (
    NEWEST,
    FailureGroup,
    RetryingGroup,
    failures,
    retrying,
)

MOST_GROUPS = 100
FailureGroupJSON = serializer_for(FailureGroup)
RetryingGroupJSON = serializer_for(RetryingGroup)


class FailuresQuery(Strict):
    """The number of groups."""

    limit = Digits(
        required=False, default=MOST_GROUPS, min_value=1, max_value=MOST_GROUPS,
        help_text="Groups of each kind.",
    )  # fmt: skip


class FailuresShown(serializers.Serializer[Any]):
    """Groups of the newest tasks, the largest first."""

    groups = FailureGroupJSON(many=True)
    looked_at = serializers.IntegerField(help_text=f"Failed tasks: up to {NEWEST:,}.")
    is_capped = serializers.BooleanField(
        help_text="Whether there may be older ones, or more groups."
    )
    retrying = RetryingGroupJSON(many=True)
    retrying_looked_at = serializers.IntegerField()
    retrying_is_capped = serializers.BooleanField()


class Failures(ApiView):
    """Groups of failed and of retrying tasks."""

    needs = {"GET": (VIEW_TASKS,)}
    tag = "stats"

    @describe("getFailures", answers={200: FailuresShown}, query=FailuresQuery)
    def get(self, request: Request) -> Response:
        """The newest failed tasks by error and name, and the newest retrying tasks by name."""
        limit = self.validated_query(request, FailuresQuery)["limit"]
        ended, coming = failures(limit=limit + 1), retrying(request.user, limit=limit + 1)
        shown = FailuresShown(
            {
                "groups": ended.groups[:limit],
                "looked_at": ended.looked_at,
                "is_capped": ended.is_capped or len(ended.groups) > limit,
                "retrying": coming.groups[:limit],
                "retrying_looked_at": coming.looked_at,
                "retrying_is_capped": coming.is_capped or len(coming.groups) > limit,
            }
        )
        return Response(shown.data)
