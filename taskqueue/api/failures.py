"""What failed lately, and what is tried again, in groups that an operation can act on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_LEASES, VIEW_TASKS
from taskqueue.api.access import has_all
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.fields import Strict
from taskqueue.api.paging import Digits
from taskqueue.core.states import TaskStatus
from taskqueue.monitoring.failures import (
    LONGEST_MESSAGE,
    NEWEST,
    FailureGroup,
    RetryingGroup,
    failures,
    retrying,
)
from taskqueue.monitoring.searching import search_text

MOST_GROUPS = 100
HIDDEN = {"example_error": None, "example_message": None}
"""What an attempt came to, for those who may not view attempts."""
SEARCH = "Finds them: the `q` of `tasks/`, and of an operation."


class FailuresQuery(Strict):
    """How much of it."""

    limit = Digits(
        required=False, default=MOST_GROUPS, min_value=1, max_value=MOST_GROUPS,
        help_text="Groups of each kind.",
    )  # fmt: skip


class FailureGroupShown(serializers.Serializer[Any]):
    """Tasks of one name that ended with one kind of error."""

    error_class = serializers.CharField(help_text="Empty: they failed without one.")
    name = serializers.CharField()
    count = serializers.IntegerField()
    first_seen = serializers.DateTimeField()
    last_seen = serializers.DateTimeField()
    example_id = serializers.UUIDField(help_text="The newest of them.")
    example_message = serializers.CharField(
        help_text=f"Its error's message, up to {LONGEST_MESSAGE:,} characters."
    )
    q = serializers.CharField(help_text=SEARCH)


class RetryingGroupShown(serializers.Serializer[Any]):
    """Tasks of one name that wait for their next attempt."""

    name = serializers.CharField()
    count = serializers.IntegerField()
    next_at = serializers.DateTimeField(help_text="When the first of them is tried again.")
    example_id = serializers.UUIDField(help_text="The newest of them.")
    example_error = serializers.CharField(
        allow_null=True, help_text="The error class of its last attempt; null: not for you to see."
    )
    example_message = serializers.CharField(allow_null=True)
    q = serializers.CharField(help_text=SEARCH)


class FailuresShown(serializers.Serializer[Any]):
    """Groups of the newest tasks, the largest first."""

    groups = FailureGroupShown(many=True)
    looked_at = serializers.IntegerField(help_text=f"Failed tasks: up to {NEWEST:,}.")
    is_capped = serializers.BooleanField(
        help_text="Whether there may be older ones, or more groups."
    )
    retrying = RetryingGroupShown(many=True)
    retrying_looked_at = serializers.IntegerField()
    retrying_is_capped = serializers.BooleanField()


class Failures(ApiView):
    """What went wrong."""

    needs = {"GET": (VIEW_TASKS,)}
    tag = "stats"

    @describe("getFailures", answers={200: FailuresShown}, query=FailuresQuery)
    def get(self, request: Request) -> Response:
        """The newest failed tasks by error and task, and by task those that are tried again."""
        limit = self.validated_query(request, FailuresQuery)["limit"]
        ended, coming = failures(limit=limit + 1), retrying(limit=limit + 1)
        retried = [_retried(group) for group in coming.groups[:limit]]
        if not has_all(request.user, (VIEW_LEASES,)):
            retried = [{**each, **HIDDEN} for each in retried]
        return Response(
            {
                "groups": [_failed(group) for group in ended.groups[:limit]],
                "looked_at": ended.looked_at,
                "is_capped": ended.is_capped or len(ended.groups) > limit,
                "retrying": retried,
                "retrying_looked_at": coming.looked_at,
                "retrying_is_capped": coming.is_capped or len(coming.groups) > limit,
            }
        )


def _failed(group: FailureGroup) -> dict[str, Any]:
    words = {"status": TaskStatus.FAILED.value, "class": group.error_class, "name": group.name}
    return {**asdict(group), "q": search_text(**words)}


def _retried(group: RetryingGroup) -> dict[str, Any]:
    text = search_text(status=TaskStatus.RETRYING.value, name=group.name)
    return {**asdict(group), "q": text}
