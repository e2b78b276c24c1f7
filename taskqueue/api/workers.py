"""Workers: their state, and requests to quiet, resume, stop or kill them."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_WORKERS
from taskqueue.api.base import endpoint
from taskqueue.api.views import LongPaged, OneView, act_view, page, page_of
from taskqueue.engine.verbs import WORKER_VERBS
from taskqueue.exceptions import WorkerDoesNotExist
from taskqueue.monitoring.read_models.worker import ShownWorker, worker_named, workers_after

Workers = page_of(ShownWorker, "Workers by name.")


class WorkerView(OneView):
    """One worker, which sees a request with its next ping."""

    needs = {"GET": (VIEW_WORKERS,)}
    tag = "workers"
    is_row = False
    compared = ("id", "state", "request")
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


ACTS = {name: act_view(WorkerView, verb) for name, verb in WORKER_VERBS.items()}
