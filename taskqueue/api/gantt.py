"""Attempts by worker, over time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_LEASES, VIEW_TASKS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Moment, Strict, Text
from taskqueue.api.views import Digits
from taskqueue.monitoring.gantt import MOST_BARS, MOST_LOOKED, Gantt, gantt
from taskqueue.monitoring.read_models.base import json_form

LONGEST_SPAN = 7 * 86_400


class GanttQuery(Strict):
    """The span, and whose attempts."""

    seconds = Digits(
        default=900, min_value=1, max_value=LONGEST_SPAN, help_text="The length of the span."
    )
    until = Moment(required=False, help_text="The end of the span; now if it is left out.")
    worker_name = Text(required=False, default="", allow_blank=True, max_length=150)
    name = Text(required=False, default="", allow_blank=True, max_length=255)
    queue_name = Text(required=False, default="", allow_blank=True, max_length=100)


class Attempts(ApiView):
    """Attempts of workers, and their times."""

    needs = {"GET": (VIEW_LEASES, VIEW_TASKS)}
    tag = "stats"

    @endpoint("listAttemptsOverWorkers", answers={200: Gantt}, query=GanttQuery)
    def get(self, request: Request) -> Response:
        asked: dict[str, Any] = dict(self.parameters)
        span = timedelta(seconds=asked.pop("seconds"))
        found = gantt(span, worker=asked.pop("worker_name"), **asked)
        return Response(json_form(found))

    get.__doc__ = (
        f"Return the attempts that ran in a span of time, the newest first: at most {MOST_BARS:,}"
        f" of the newest {MOST_LOOKED:,}."
    )
