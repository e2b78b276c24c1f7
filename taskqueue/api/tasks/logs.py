"""The log lines of a task, which a client can follow."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_LOGS, VIEW_TASKS
from taskqueue.api.describing import describe
from taskqueue.api.fields import Strict
from taskqueue.api.paging import Digits
from taskqueue.api.serializing import serializer_for
from taskqueue.api.tasks.conditions import TaskView, id_of
from taskqueue.api.tasks.waiting import LONGEST_WAIT, waited
from taskqueue.core.states import FINISHED
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.control.locking import status_of
from taskqueue.models import TaskLog
from taskqueue.monitoring.read_models.attempt import ShownLogLine, log_lines
from taskqueue.monitoring.read_models.task import STATUSES

PAGE, MOST = 200, 1000
LARGEST_ATTEMPT, LARGEST_ID = 2**31 - 1, 2**63 - 1
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}

LogLineJSON = serializer_for(ShownLogLine)


class LinePage(serializers.Serializer[Any]):
    """A page of lines, the oldest first, and the parameter of the next request."""

    results = LogLineJSON(many=True)
    after = serializers.IntegerField(
        help_text="The `after` of the next request, also while more may follow."
    )
    has_more = serializers.BooleanField(help_text="Whether there are more already.")
    status = serializers.ChoiceField(
        choices=STATUSES, help_text="The task's status before its lines were read."
    )
    is_complete = serializers.BooleanField(
        help_text="Whether the task has finished and these are its last lines."
    )


class WhichLines(Strict):
    """The filter of lines."""

    after = Digits(required=False, default=0, min_value=0, help_text="Only lines after this id.")
    limit = Digits(required=False, default=PAGE, min_value=1, max_value=MOST)
    level = serializers.ChoiceField(
        choices=list(LEVELS), required=False, help_text="Only lines of this level or above."
    )
    attempt = Digits(required=False, min_value=0, max_value=LARGEST_ATTEMPT)
    wait = Digits(
        required=False, default=0, min_value=0, max_value=LONGEST_WAIT,
        help_text="Seconds to wait for a line or for the task's end.",
    )  # fmt: skip


class Seen(NamedTuple):
    """The lines at one moment, and the status of the task before."""

    status: str
    lines: list[TaskLog]


class TaskLogs(TaskView):
    """The log lines of a task."""

    needs = {"GET": (VIEW_TASKS, VIEW_LOGS)}
    has_etag = True

    @describe("listLogLines", answers={200: LinePage}, query=WhichLines, problems=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        """Lines in order. To follow them, repeat the request with `after` and `wait`."""
        given = self.validated_query(request, WhichLines)
        known, limit = id_of(task_id), given["limit"]
        found = waited(
            request,
            lambda: _look(known, given),
            lambda each: bool(each.lines) or each.status in FINISHED,
            given["wait"],
        )
        seen = found.seen
        lines = seen.lines[:limit]
        has_more = len(seen.lines) > limit
        page = LinePage(
            {
                "results": log_lines(lines),
                "after": lines[-1].id if lines else given["after"],
                "has_more": has_more,
                "status": seen.status,
                "is_complete": seen.status in FINISHED and not has_more,
            }
        )
        answer = self.shown(request, page.data)
        return found.noted(answer)


def _look(task_id: UUID, given: Mapping[str, Any]) -> Seen:
    """Read the status first: lines are written before the end of their attempt. Raises 404."""
    status = status_of(project_connection(), task_id)
    lines = TaskLog.objects.using(database_alias()).filter(task_id=task_id, id__gt=given["after"])
    if "level" in given:
        lines = lines.filter(level__gte=LEVELS[given["level"]])
    if "attempt" in given:
        lines = lines.filter(attempt=given["attempt"])
    return Seen(status, list(lines.order_by("id")[: given["limit"] + 1]))
