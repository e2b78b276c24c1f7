"""Queues: the tasks that wait in each, and pausing them."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_QUEUES
from taskqueue.api.acts import Act, act_view
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.etags import has_condition, part_of
from taskqueue.api.fields import Reasoned, When
from taskqueue.api.paging import LongPaged, page, page_of
from taskqueue.api.problems import Problem
from taskqueue.api.serializing import serializer_for
from taskqueue.engine.control.locking import Seen
from taskqueue.engine.verbs import QUEUE_VERBS
from taskqueue.models import Queue
from taskqueue.monitoring.read_models.queue import ShownQueue, queue_named, queues_after

QueueJSON = serializer_for(ShownQueue)


Queues = page_of(ShownQueue, "Queues by name.")


class Pause(Reasoned):
    """The end of a pause, and its reason."""

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
        """Queues by name, with the numbers of waiting and running tasks."""
        asked = self.validated_query(request, LongPaged)
        found = queues_after(asked["cursor"], limit=asked["limit"] + 1)
        return self.shown(request, page(request, Queues, asked, found, "name"))


class QueueDetail(ApiView):
    """One queue."""

    needs = {"GET": (VIEW_QUEUES,)}
    tag = "queues"
    has_etag = True

    @describe("getQueue", answers={200: QueueJSON}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Return a queue that a worker or a task has, or has had."""
        self.validated_query(request)
        return _answer(self, request, name)


class QueueAct(Act):
    """A verb on one queue."""

    tag = "queues"
    answers = {200: QueueJSON}

    def seen(self, request: Request, key: str) -> Seen:
        if has_condition(request):
            _named(key)
        return super().seen(request, key)

    def part(self, row: Queue) -> str:
        return _part(_named(row.name))

    def answer(self, request: Request, key: str, result: Any) -> Response:
        return _answer(self, request, key)


class PauseAct(QueueAct):
    """Pause a queue."""

    body = Pause


ACTS = {
    verb.name: act_view(PauseAct if verb.name == "pause" else QueueAct, verb, looks=(VIEW_QUEUES,))
    for verb in QUEUE_VERBS.values()
}


def _answer(view: ApiView, request: Request, name: str) -> Response:
    """Answer with the queue. If-Match compares its pause, not its tasks."""
    figures = _named(name)
    return view.shown(request, QueueJSON(figures).data, part=_part(figures))


def _part(figures: ShownQueue) -> str:
    pause = (figures.paused_at, figures.paused_until, figures.paused_by, figures.pause_reason)
    return part_of([figures.name, *pause])


def _named(name: str) -> ShownQueue:
    found = queue_named(name)
    if found is None:
        raise Problem(404, "queue_not_found", f"No queue is named {name!r} here.")
    return found
