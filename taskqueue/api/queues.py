"""Queues: what waits in each, and pausing them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import control
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.fields import Reasoned, When
from taskqueue.api.problems import Problem
from taskqueue.monitoring.counts import CAP
from taskqueue.monitoring.lanes import QueueFigures, queue_figures
from taskqueue.permissions import CONTROL_QUEUES, VIEW_QUEUES

MOST = 1000


class QueueShown(serializers.Serializer[Any]):
    """A queue at this moment."""

    name = serializers.CharField()
    waiting = serializers.IntegerField(help_text=f"Ready tasks, counted up to {CAP:,} or less.")
    is_waiting_capped = serializers.BooleanField(help_text="Whether there may be more.")
    oldest_seconds = serializers.FloatField(
        allow_null=True, help_text="For how long the one of them waits that waits longest."
    )
    running = serializers.IntegerField()
    slots = serializers.IntegerField(help_text="Of the workers that take from it.")
    is_served = serializers.BooleanField(help_text="Whether a worker lives that takes from it.")
    is_paused = serializers.BooleanField()
    paused_at = serializers.DateTimeField(allow_null=True)
    paused_until = serializers.DateTimeField(allow_null=True)
    paused_by = serializers.CharField()
    pause_reason = serializers.CharField()


class Queues(serializers.Serializer[Any]):
    """All queues; there are few."""

    results = QueueShown(many=True)


class Pause(Reasoned):
    """How long a queue is paused, and why."""

    until = When(
        required=False, allow_null=True, default=None,
        help_text="A moment, or seconds from now; null: until it is resumed.",
    )  # fmt: skip


class QueueList(ApiView):
    """All queues."""

    needs = {"GET": (VIEW_QUEUES,)}
    tag = "queues"
    has_etag = True

    @describe("listQueues", answers={200: Queues})
    def get(self, request: Request) -> Response:
        """All queues by name, up to a thousand, with what waits and runs in each."""
        self.asked(request)
        figures = queue_figures(limit=MOST)
        return self.shown(request, {"results": [_shown(each) for each in figures]})


class QueueDetail(ApiView):
    """One queue."""

    needs = {"GET": (VIEW_QUEUES,)}
    tag = "queues"
    has_etag = True

    @describe("getQueue", answers={200: QueueShown}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """A queue that some worker or task has, or has had."""
        self.asked(request)
        return self.shown(request, _figures_of(name))


class QueuePause(ApiView):
    """Pausing a queue."""

    needs = {"POST": (VIEW_QUEUES, CONTROL_QUEUES)}
    tag = "queues"

    @describe("pauseQueue", answers={200: QueueShown}, body=Pause, problems=(404,))
    def post(self, request: Request, name: str) -> Response:
        """Claim nothing more of it; what runs goes on. Again, it replaces time and reason."""
        given = self.told(request, Pause)

        def act() -> Response:
            control.pause(name, until=given["until"], by=request.user, reason=given["reason"])
            return Response(_figures_of(name))

        return self.once(request, act)


class QueueResume(ApiView):
    """Resuming a queue."""

    needs = {"POST": (VIEW_QUEUES, CONTROL_QUEUES)}
    tag = "queues"

    @describe("resumeQueue", answers={200: QueueShown}, body=Reasoned, problems=(404, 409))
    def post(self, request: Request, name: str) -> Response:
        """End its pause."""
        given = self.told(request, Reasoned)

        def act() -> Response:
            control.resume(name, by=request.user, reason=given["reason"])
            return Response(_figures_of(name))

        return self.once(request, act)


def _figures_of(name: str) -> dict[str, Any]:
    for each in queue_figures(limit=MOST):
        if each.name == name:
            return _shown(each)
    raise Problem(404, "queue_not_found", f"No queue is named {name!r} here.")


def _shown(figures: QueueFigures) -> dict[str, Any]:
    values = {"is_waiting_capped": figures.waiting.is_capped, "waiting": figures.waiting.value}
    return {
        name: values[name] if name in values else getattr(figures, name)
        for name in QueueShown._declared_fields
    }
