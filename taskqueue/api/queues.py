"""Queues: what waits in each, and pausing them."""

from __future__ import annotations

from django.db.models import F
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import control
from taskqueue.access.permissions import CONTROL_QUEUES, VIEW_QUEUES
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.etags import check_part, has_condition, part_of
from taskqueue.api.fields import Reasoned, When
from taskqueue.api.paging import LongPaged, NextPage, page
from taskqueue.api.problems import Problem
from taskqueue.api.serializing import serializer_for
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import Queue
from taskqueue.monitoring.read_models.queue import ShownQueue, queue_named, queues_after

QueueJSON = serializer_for(ShownQueue)


class Queues(NextPage):
    """Queues by name."""

    results = QueueJSON(many=True)


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

    @describe("listQueues", answers={200: Queues}, query=LongPaged)
    def get(self, request: Request) -> Response:
        """Queues by name, with what waits and runs in each."""
        asked = self.validated_query(request, LongPaged)
        found = queues_after(asked["cursor"], limit=asked["limit"] + 1)
        kept = found[: asked["limit"]]
        following = kept[-1].name if len(found) > len(kept) else None
        return self.shown(request, page(request, Queues, kept, following))


class QueueDetail(ApiView):
    """One queue."""

    needs = {"GET": (VIEW_QUEUES,)}
    tag = "queues"
    has_etag = True

    @describe("getQueue", answers={200: QueueJSON}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """A queue that some worker or task has, or has had."""
        self.validated_query(request)
        return _answer(self, request, name)


class QueuePause(ApiView):
    """Pausing a queue."""

    needs = {"POST": (VIEW_QUEUES, CONTROL_QUEUES)}
    tag = "queues"
    is_conditional = True

    @describe("pauseQueue", answers={200: QueueJSON}, body=Pause, problems=(404, 412))
    def post(self, request: Request, name: str) -> Response:
        """Claim nothing more of it; what runs goes on. Again, it replaces time and reason."""
        given = self.validated_body(request, Pause)

        def act() -> Response:
            _check(request, name)
            control.pause(name, until=given["until"], by=request.user, reason=given["reason"])
            return _answer(self, request, name)

        return self.once(request, act)


class QueueResume(ApiView):
    """Resuming a queue."""

    needs = {"POST": (VIEW_QUEUES, CONTROL_QUEUES)}
    tag = "queues"
    is_conditional = True

    @describe("resumeQueue", answers={200: QueueJSON}, body=Reasoned, problems=(404, 409, 412))
    def post(self, request: Request, name: str) -> Response:
        """End its pause."""
        given = self.validated_body(request, Reasoned)

        def act() -> Response:
            _check(request, name)
            control.resume(name, by=request.user, reason=given["reason"])
            return _answer(self, request, name)

        return self.once(request, act)


def _answer(view: ApiView, request: Request, name: str) -> Response:
    """The queue. For If-Match its pause counts, and not what waits in it."""
    figures = _named(name)
    return view.shown(request, QueueJSON(figures).data, part=_part(figures))


def _check(request: Request, name: str) -> None:
    """Lock the queue where it is only meant as the client has seen it. Raises 412."""
    if has_condition(request):
        if is_storable(name):
            Queue.objects.using(database_alias()).filter(name=name).update(name=F("name"))
        check_part(request, _part(_named(name)))


def _part(figures: ShownQueue) -> str:
    pause = (figures.paused_at, figures.paused_until, figures.paused_by, figures.pause_reason)
    return part_of([figures.name, *pause])


def _named(name: str) -> ShownQueue:
    found = queue_named(name)
    if found is None:
        raise Problem(404, "queue_not_found", f"No queue is named {name!r} here.")
    return found
