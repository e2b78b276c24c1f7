"""The attempts of a task: who ran it, when, and what came of it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from taskqueue.access.permissions import VIEW_LEASES, VIEW_TASKS
from taskqueue.api.describing import describe
from taskqueue.api.fields import Strict
from taskqueue.api.paging import Digits
from taskqueue.api.tasks.conditions import TaskView, id_of
from taskqueue.core.states import LeaseStatus
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.control.locking import status_of
from taskqueue.models import Lease

PAGE, MOST = 20, 100
LARGEST = 2**31 - 1


class AttemptShown(serializers.Serializer[Any]):
    """One attempt by one worker."""

    attempt = serializers.IntegerField()
    worker_name = serializers.CharField()
    status = serializers.ChoiceField(choices=[status.value for status in LeaseStatus])
    claimed_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(help_text="Of one that runs: when it counts as lost.")
    progress = serializers.FloatField(allow_null=True, help_text="Percent.")
    progress_message = serializers.CharField()
    error_class = serializers.CharField()
    error_message = serializers.CharField()
    traceback = serializers.CharField()
    stop_requested_at = serializers.DateTimeField(allow_null=True)
    stop_requested_by = serializers.CharField()
    stop_reason = serializers.CharField()
    stop_seen_at = serializers.DateTimeField(allow_null=True)
    wedged_at = serializers.DateTimeField(allow_null=True)


class AttemptPage(serializers.Serializer[Any]):
    """Some attempts, oldest first."""

    results = AttemptShown(many=True)
    next = serializers.URLField(allow_null=True, help_text="The page of the later ones.")


class WhichAttempts(Strict):
    """Which page."""

    after = Digits(
        required=False, default=0, min_value=0, max_value=LARGEST, help_text="Later ones alone."
    )
    limit = Digits(required=False, default=PAGE, min_value=1, max_value=MOST)


class TaskAttempts(TaskView):
    """What its attempts came to."""

    needs = {"GET": (VIEW_TASKS, VIEW_LEASES)}
    has_etag = True

    @describe("listAttempts", answers={200: AttemptPage}, query=WhichAttempts, problems=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        """Every attempt by every worker, oldest first, with its traceback."""
        given = self.validated_query(request, WhichAttempts)
        known = id_of(task_id)
        status_of(project_connection(), known)
        leases = Lease.objects.using(database_alias()).filter(
            task_id=known, attempt__gt=given["after"]
        )
        found = list(leases.defer("return_value").order_by("attempt")[: given["limit"] + 1])
        results = [_shown(each) for each in found[: given["limit"]]]
        following = None
        if len(found) > given["limit"]:
            url = request.build_absolute_uri()
            following = replace_query_param(url, "after", str(results[-1]["attempt"]))
        return self.shown(request, {"results": results, "next": following})


def _shown(lease: Lease) -> dict[str, Any]:
    return {name: getattr(lease, "worker_id" if name == "worker_name" else name) for name in NAMES}


NAMES = tuple(map(str, AttemptShown().fields))
