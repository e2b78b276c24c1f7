"""Why a task stands where it stands."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.api.describing import describe
from taskqueue.api.fields import Anything
from taskqueue.api.tasks.conditions import TaskView, id_of
from taskqueue.api.tasks.discretion import told
from taskqueue.api.tasks.rows import STATUSES
from taskqueue.monitoring.why import why
from taskqueue.results.reading import row_of


class ReasonShown(serializers.Serializer[Any]):
    """One reason."""

    code = serializers.CharField(help_text="For programs: it stays as it is.")
    message = serializers.CharField(help_text="A sentence for people.")
    subject = serializers.CharField(help_text="The queue, worker, type, person or error meant.")
    moment = serializers.DateTimeField(allow_null=True)
    details = serializers.DictField(child=Anything(allow_null=True))


class Reasons(serializers.Serializer[Any]):
    """What keeps a task from running, who holds it, or how it ended."""

    id = serializers.UUIDField()
    status = serializers.ChoiceField(choices=STATUSES)
    reasons = ReasonShown(many=True)


class TaskWhy(TaskView):
    """Why it stands where it stands."""

    needs = {"GET": (VIEW_TASKS,)}

    @describe("explainTask", answers={200: Reasons}, problems=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        """What keeps it from running, who holds it until when, or how it ended.

        What is told of workers, attempts and pauses takes the permission to view these; without
        it, `code` and a `message` that names nobody remain.
        """
        self.validated_query(request)
        task = row_of(id_of(task_id))
        reasons = [told(each, request.user) for each in why(task)]
        return Response({"id": task.id, "status": task.status, "reasons": reasons})
