"""Queues: the tasks that wait in each, pausing and limiting them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_QUEUES
from taskqueue.api.base import endpoint
from taskqueue.api.fields import Reasoned, Strict, When, Whole
from taskqueue.api.headers import part_of
from taskqueue.api.limits import Rate
from taskqueue.api.problems import Problem
from taskqueue.api.stats import SpanQuery
from taskqueue.api.views import LongPaged, OneView, act_view, page, page_of
from taskqueue.declarations.limits import MOST_AT_ONCE
from taskqueue.engine.control.queue_verbs import QUEUE_VERBS
from taskqueue.engine.depth_statement import CAP as MOST_DEEP
from taskqueue.monitoring.depths import depths
from taskqueue.monitoring.fairness import ShownFairness, fairness_of
from taskqueue.monitoring.read_models.base import about, from_row, json_form
from taskqueue.monitoring.read_models.queue import ShownQueue, queue_named, queues_after
from taskqueue.monitoring.read_models.queue_details import QueueDetails, details_of
from taskqueue.monitoring.rollups import SPANS

Queues = page_of(ShownQueue, "Queues by name.")


class Pause(Reasoned):
    """The end of a pause, and its reason."""

    until = When(
        required=False, allow_null=True, default=None,
        help_text="A moment, or seconds from now; null: until it is resumed.",
    )  # fmt: skip


class QueueLimit(Strict):
    """The numbers; at least one of them."""

    concurrency = Whole(
        required=False, allow_null=True, default=None, min_value=1, max_value=MOST_AT_ONCE,
        help_text="How many run at once; null: any number.",
    )  # fmt: skip
    rate = Rate(
        allow_null=True, default=None,
        help_text="How many start in every window, such as 100/m; null: any number.",
    )  # fmt: skip

    def validate(self, attrs: Any) -> Any:
        """Refuse a limit without numbers."""
        if attrs["concurrency"] is None and attrs["rate"] is None:
            raise serializers.ValidationError("Give a concurrency or a rate; null lifts the limit.")
        return attrs


class QueueChange(Reasoned):
    """The limit of a queue."""

    limit = QueueLimit(allow_null=True, help_text="null lifts it.")


class QueueView(OneView):
    """One queue. If-Match compares its pause and its limit, not its tasks."""

    needs = {"GET": (VIEW_QUEUES,)}
    tag = "queues"
    is_row = False
    compared = ("name", "paused_at", "paused_until", "paused_by", "pause_reason", "limit")
    answers = {200: QueueDetails}

    def find(self, key: str) -> ShownQueue:
        queue = queue_named(key)
        if queue is None:
            raise Problem(404, "queue_not_found", f"No queue is named {key!r} here.")
        return queue

    def details(self, found: ShownQueue) -> QueueDetails:
        return details_of(found)

    def part(self, found: ShownQueue) -> str:
        return part_of([json_form(getattr(found, name)) for name in self.compared])


class QueueList(QueueView):
    """All queues."""

    @endpoint("listQueues", answers={200: Queues}, query=LongPaged)
    def get(self, request: Request) -> Response:
        """Queues by name, with the numbers of waiting and running tasks."""
        cursor, limit = self.parameters["cursor"], self.parameters["limit"]
        return page(self, queues_after(cursor, limit=limit + 1), "name")


class QueueFairness(QueueView):
    """How tenants share a queue."""

    @endpoint("getQueueFairness", answers={200: ShownFairness}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Return the largest tenants, with what waits and what started within the last hour."""
        return self.shown(fairness_of(self.find(name).name))


class QueueDetail(QueueView):
    """The state of one queue, and its limit."""

    needs = {
        "GET": (VIEW_QUEUES,),
        "PATCH": (VIEW_QUEUES, *QUEUE_VERBS["limit"].permissions),
        "DELETE": (VIEW_QUEUES, *QUEUE_VERBS["delete"].permissions),
    }

    @endpoint("getQueue", answers={200: QueueDetails}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Return a queue that a worker or a task has, or has had, with the counts of its tasks."""
        return self.answer(name)

    @endpoint("deleteQueue", answers={204: None}, query=Reasoned, problems=(404, 409, 412))
    def delete(self, request: Request, name: str) -> Response:
        """Delete a queue that is empty and that no worker serves by its name, with its pause and
        its limit. The next task that is enqueued in it creates it again.
        """
        return self.act(QUEUE_VERBS["delete"], name, **self.parameters)

    @endpoint(
        "changeQueue", answers={200: QueueDetails}, body=QueueChange, problems=(404, 409, 412)
    )
    def patch(self, request: Request, name: str) -> Response:
        """Set or lift its limit, for all its tasks. It holds for those that wait already too."""
        return self.act(
            QUEUE_VERBS["limit"],
            name,
            reason=self.parameters["reason"],
            **(self.parameters["limit"] or {}),
        )


@dataclass(frozen=True, kw_only=True)
class QueueDepth:
    """How many tasks waited, step by step, the oldest first; each list is as long as `starts`."""

    span: str = about(choices=SPANS)
    step_seconds: int
    starts: list[datetime]
    waiting: list[int | None] = about("The most of the step; null: no worker was there to count.")
    is_capped: bool = about(f"Whether there may have been more: {MOST_DEEP:,} are counted at most.")


class QueueDepthView(QueueView):
    """How many tasks waited over time."""

    @endpoint("getQueueDepth", answers={200: QueueDepth}, query=SpanQuery, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Return how many tasks of a queue waited, as workers recorded it once a minute."""
        found = depths(self.parameters["span"], queue_name=self.find(name).name)
        return self.shown(from_row(QueueDepth, found))


BODIES = {"pause": Pause}
ACTS = {
    name: act_view(QueueView, verb, body=BODIES.get(name, Reasoned))
    for name, verb in QUEUE_VERBS.items()
    if name not in ("limit", "delete")
}
