"""The attempts of a task: worker, times and outcome of each."""

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
from taskqueue.api.tasks.rows import AttemptJSON
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.control.locking import status_of
from taskqueue.models import Lease
from taskqueue.monitoring.read_models.attempt import shown_attempts

PAGE, MOST = 20, 100
LARGEST = 2**31 - 1


class AttemptPage(serializers.Serializer[Any]):
    """A page of attempts, the oldest first."""

    results = AttemptJSON(many=True)
    next = serializers.URLField(allow_null=True, help_text="The page of later attempts.")


class WhichAttempts(Strict):
    """The parameters of a page."""

    after = Digits(
        required=False,
        default=0,
        min_value=0,
        max_value=LARGEST,
        help_text="Only attempts after this number.",
    )
    limit = Digits(required=False, default=PAGE, min_value=1, max_value=MOST)


class TaskAttempts(TaskView):
    """The attempts of a task."""

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
        attempts = shown_attempts(found[: given["limit"]])
        following = None
        if len(found) > given["limit"]:
            url = request.build_absolute_uri()
            following = replace_query_param(url, "after", str(attempts[-1].attempt))
        page = AttemptPage({"results": attempts, "next": following})
        return self.shown(request, page.data)
