"""Queues: the tasks that wait in each, and pausing them."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_QUEUES
from taskqueue.api.base import endpoint
from taskqueue.api.fields import Reasoned, When
from taskqueue.api.problems import Problem
from taskqueue.api.views import LongPaged, OneView, act_view, page, page_of
from taskqueue.engine.verbs import QUEUE_VERBS
from taskqueue.monitoring.read_models.queue import ShownQueue, queue_named, queues_after

Queues = page_of(ShownQueue, "Queues by name.")


class Pause(Reasoned):
    """The end of a pause, and its reason."""

    until = When(
        required=False, allow_null=True, default=None,
        help_text="A moment, or seconds from now; null: until it is resumed.",
    )  # fmt: skip


class QueueView(OneView):
    """One queue. If-Match compares its pause, not its tasks."""

    needs = {"GET": (VIEW_QUEUES,)}
    tag = "queues"
    is_row = False
    compared = ("name", "paused_at", "paused_until", "paused_by", "pause_reason")
    answers = {200: ShownQueue}

    def find(self, key: str) -> ShownQueue:
        queue = queue_named(key)
        if queue is None:
            raise Problem(404, "queue_not_found", f"No queue is named {key!r} here.")
        return queue


class QueueList(QueueView):
    """All queues."""

    @endpoint("listQueues", answers={200: Queues}, query=LongPaged)
    def get(self, request: Request) -> Response:
        """Queues by name, with the numbers of waiting and running tasks."""
        cursor, limit = self.parameters["cursor"], self.parameters["limit"]
        return page(self, queues_after(cursor, limit=limit + 1), "name")


class QueueDetail(QueueView):
    """The state of one queue."""

    @endpoint("getQueue", answers={200: ShownQueue}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Return a queue that a worker or a task has, or has had."""
        return self.answer(name)


BODIES = {"pause": Pause}
ACTS = {
    name: act_view(QueueView, verb, body=BODIES.get(name, Reasoned))
    for name, verb in QUEUE_VERBS.items()
}
