"""Workers: their state, and requests to quiet, resume, stop or kill them."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_WORKERS
from taskqueue.api.base import endpoint
from taskqueue.api.fields import Flag, Reasoned, Text, Whole
from taskqueue.api.views import LongPaged, OneView, act_view, page, page_of
from taskqueue.declarations.serving import LONGEST_TEXT, MOST_CONCURRENCY
from taskqueue.engine.control.worker_verbs import WORKER_VERBS
from taskqueue.exceptions import WorkerDoesNotExist
from taskqueue.monitoring.read_models.worker import ShownWorker, worker_named, workers_after

Workers = page_of(ShownWorker, "Workers by name.")


class Change(Reasoned):
    """The tasks that a worker takes from now on; fields left out, or null, stay as they are."""

    concurrency = Whole(
        required=False, allow_null=True, default=None, min_value=1, max_value=MOST_CONCURRENCY,
        help_text="Number of slots.",
    )  # fmt: skip
    queues = Text(
        required=False, allow_null=True, default=None, allow_blank=True, max_length=LONGEST_TEXT,
        help_text="As --queues of runworker, such as `critical=6,mail=3@2`; empty: all queues.",
    )  # fmt: skip
    strict = Flag(
        required=False, allow_null=True, default=None,
        help_text="Whether it empties its queues in their order, as --strict.",
    )  # fmt: skip
    definition_slots = Text(
        required=False, allow_null=True, default=None, allow_blank=True, max_length=LONGEST_TEXT,
        help_text="As --definition-slots, such as `shop.tasks.export=1`; empty: no limits.",
    )  # fmt: skip


class WorkerView(OneView):
    """One worker, which sees a request with its next ping."""

    needs = {"GET": (VIEW_WORKERS,)}
    tag = "workers"
    is_row = False
    compared = ("id", "state", "request", "wanted_at")
    answers = {202: ShownWorker}

    def find(self, key: str) -> ShownWorker:
        worker = worker_named(key)
        if worker is None:
            raise WorkerDoesNotExist(f"No worker is named {key!r}.")
        return worker


class WorkerList(WorkerView):
    """All workers."""

    @endpoint("listWorkers", answers={200: Workers}, query=LongPaged)
    def get(self, request: Request) -> Response:
        """Workers by name, including those that were lost or stopped lately."""
        cursor, limit = self.parameters["cursor"], self.parameters["limit"]
        return page(self, workers_after(cursor, limit=limit + 1), "name")


class WorkerDetail(WorkerView):
    """The state of one worker."""

    @endpoint("getWorker", answers={200: ShownWorker}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Return a worker, also one that has stopped."""
        return self.answer(name)


BODIES = {"change": Change}
ACTS = {
    name: act_view(WorkerView, verb, body=BODIES.get(name, Reasoned))
    for name, verb in WORKER_VERBS.items()
}
