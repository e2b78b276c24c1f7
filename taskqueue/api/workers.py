"""Workers: their state, and requests to quiet, resume, stop or kill them."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_WORKERS
from taskqueue.api.acts import Act, act_view
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.etags import part_of
from taskqueue.api.paging import LongPaged, page, page_of
from taskqueue.api.serializing import serializer_for
from taskqueue.engine.verbs import WORKER_VERBS
from taskqueue.exceptions import WorkerDoesNotExist
from taskqueue.models import Worker
from taskqueue.monitoring.read_models.worker import ShownWorker, worker_named, workers_after

WorkerJSON = serializer_for(ShownWorker)


Workers = page_of(ShownWorker, "Workers by name.")


class WorkerList(ApiView):
    """All workers."""

    needs = {"GET": (VIEW_WORKERS,)}
    tag = "workers"
    has_etag = True

    @describe("listWorkers", answers={200: Workers}, query=LongPaged)
    def get(self, request: Request) -> Response:
        """Workers by name, including those that were lost or stopped lately."""
        asked = self.validated_query(request, LongPaged)
        found = workers_after(asked["cursor"], limit=asked["limit"] + 1)
        return self.shown(request, page(request, Workers, asked, found, "name"))


class WorkerDetail(ApiView):
    """One worker."""

    needs = {"GET": (VIEW_WORKERS,)}
    tag = "workers"
    has_etag = True

    @describe("getWorker", answers={200: WorkerJSON}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Return a worker, also one that has stopped."""
        self.validated_query(request)
        return _answer(self, request, _named(name))


class WorkerAct(Act):
    """A request to one worker, which sees it with its next ping."""

    tag = "workers"
    answers = {202: WorkerJSON}

    def part(self, row: Worker) -> str:
        return _part(_named(row.name))

    def answer(self, request: Request, key: str, result: Any) -> Response:
        return _answer(self, request, _named(key), status=202)


ACTS = {
    verb.name: act_view(WorkerAct, verb, looks=(VIEW_WORKERS,)) for verb in WORKER_VERBS.values()
}


def _answer(
    view: ApiView, request: Request, figures: ShownWorker, *, status: int = 200
) -> Response:
    """Answer with the worker. If-Match compares its state and its request, not its pings."""
    return view.shown(request, WorkerJSON(figures).data, status=status, part=_part(figures))


def _part(figures: ShownWorker) -> str:
    return part_of([figures.id, figures.state, figures.request])


def _named(name: str) -> ShownWorker:
    found = worker_named(name)
    if found is None:
        raise WorkerDoesNotExist(f"No worker is named {name!r}.")
    return found
