"""Workers: who lives, what they are at, and asking them to be quiet or to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from django.db.models import F
from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue import control
from taskqueue.access.permissions import STOP, VIEW_WORKERS
from taskqueue.api.base import ApiView
from taskqueue.api.describing import describe
from taskqueue.api.etags import check_part, has_condition, part_of
from taskqueue.api.fields import Reasoned
from taskqueue.api.paging import LongPaged, NextPage, page
from taskqueue.api.serializing import serializer_for
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import is_storable
from taskqueue.exceptions import WorkerDoesNotExist
from taskqueue.models import Worker
from taskqueue.monitoring.read_models.worker import ShownWorker, worker_named, workers_after

WorkerJSON = serializer_for(ShownWorker)


class Workers(NextPage):
    """Workers by name."""

    results = WorkerJSON(many=True)


class WorkerList(ApiView):
    """All workers."""

    needs = {"GET": (VIEW_WORKERS,)}
    tag = "workers"
    has_etag = True

    @describe("listWorkers", answers={200: Workers}, query=LongPaged)
    def get(self, request: Request) -> Response:
        """Workers by name, those included that were lost or have ended lately."""
        asked = self.validated_query(request, LongPaged)
        found = workers_after(asked["cursor"], limit=asked["limit"] + 1)
        kept = found[: asked["limit"]]
        following = kept[-1].name if len(found) > len(kept) else None
        return self.shown(request, page(request, Workers, kept, following))


class WorkerDetail(ApiView):
    """One worker."""

    needs = {"GET": (VIEW_WORKERS,)}
    tag = "workers"
    has_etag = True

    @describe("getWorker", answers={200: WorkerJSON}, problems=(404,))
    def get(self, request: Request, name: str) -> Response:
        """A worker, also one that has ended."""
        self.validated_query(request)
        return _answer(self, request, _named(name))


class WorkerAct(ApiView):
    """Asking a worker; it sees it with its next ping."""

    needs = {"POST": (VIEW_WORKERS, STOP)}
    tag = "workers"
    is_conditional = True
    verb: ClassVar[Callable[..., None]]

    def act(self, request: Request, name: str) -> Response:
        """Ask, and show the worker as it is at this moment."""
        given = self.validated_body(request, Reasoned)

        def act() -> Response:
            _check(request, name)
            type(self).verb(name, by=request.user, reason=given["reason"])
            return _answer(self, request, _named(name), status=202)

        return self.once(request, act)


class WorkerQuiet(WorkerAct):
    """Letting a worker rest."""

    verb = control.quiet_worker

    @describe("quietWorker", answers={202: WorkerJSON}, body=Reasoned, problems=(404, 412))
    def post(self, request: Request, name: str) -> Response:
        """Claim nothing more, finish what runs, and stay."""
        return self.act(request, name)


class WorkerResume(WorkerAct):
    """Ending a worker's rest."""

    verb = control.resume_worker

    @describe("resumeWorker", answers={202: WorkerJSON}, body=Reasoned, problems=(404, 409, 412))
    def post(self, request: Request, name: str) -> Response:
        """Let a quiet worker claim tasks again; 409 where it is not quiet, or is to end."""
        return self.act(request, name)


class WorkerStop(WorkerAct):
    """Ending a worker."""

    verb = control.stop_worker

    @describe("stopWorker", answers={202: WorkerJSON}, body=Reasoned, problems=(404, 412))
    def post(self, request: Request, name: str) -> Response:
        """End as at SIGTERM: finish within the shutdown timeout, return the rest."""
        return self.act(request, name)


class WorkerKill(WorkerAct):
    """Ending a worker at once."""

    verb = control.kill_worker

    @describe("killWorker", answers={202: WorkerJSON}, body=Reasoned, problems=(404, 412))
    def post(self, request: Request, name: str) -> Response:
        """End at once, and return what runs."""
        return self.act(request, name)


def _answer(
    view: ApiView, request: Request, figures: ShownWorker, *, status: int = 200
) -> Response:
    """The worker. For If-Match its state counts and what is asked of it, and not its pings."""
    return view.shown(request, WorkerJSON(figures).data, status=status, part=_part(figures))


def _check(request: Request, name: str) -> None:
    """Lock the worker where it is only meant as the client has seen it. Raises 412."""
    if has_condition(request):
        if is_storable(name):
            Worker.objects.using(database_alias()).filter(name=name).update(name=F("name"))
        check_part(request, _part(_named(name)))


def _part(figures: ShownWorker) -> str:
    return part_of([figures.id, figures.state, figures.request])


def _named(name: str) -> ShownWorker:
    found = worker_named(name)
    if found is None:
        raise WorkerDoesNotExist(f"No worker is named {name!r}.")
    return found
