"""Export the tasks that a search finds, as CSV or JSON Lines, sent as they are read."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied, SynchronousOnlyOperation
from django.core.handlers.asgi import ASGIRequest
from django.db import Error
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.tasks.export_formats import FORMATS, Format
from taskqueue.admin.tasks.narrowing import searched
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.exports import KEPT, begin_export, end_export, renew_export
from taskqueue.models import Task
from taskqueue.monitoring.read_models.base import json_form
from taskqueue.monitoring.read_models.task import ExportedTask, task_as, task_columns
from taskqueue.monitoring.searching import Effort, SearchError, SearchNotAllowed, find
from taskqueue.monitoring.searching.orders import is_cursor

BATCH = 500
MOST_ROWS = 1_000_000
MOST_SECONDS = 15.0
"""For so long an export searches, without what the client takes to read; then it says where to
continue. Servers often end a request after 30 s."""
LONGEST = 120.0
"""For so many seconds an export holds its place, however slowly the client reads; then it also says
where to continue. Few run at a time: whoever reads one line a minute would keep out all others."""
EFFORT = Effort(largest=200_000, most=2_000_000, windows=20, seconds=2.0)
RETRY_AFTER = 15


class TaskExport(ReadOnlyAdmin):
    """`export/?format=csv&q=status:failed`: it reads in batches, each a short query."""

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Return the file, for users who may view tasks."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        kind, before = request.GET.get("format", "csv"), request.GET.get("before", "")
        if kind not in FORMATS:
            return _refused(f"There are the formats {', '.join(FORMATS)}.")
        if before and not is_cursor(before):
            return _refused("`before` is not what the last line of an export gave.")
        try:
            which = searched(request, request.GET.get("q", "")).which
        except SearchNotAllowed as error:
            return _refused(str(error), status=403)
        except SearchError as error:
            return _refused(str(error))
        form = FORMATS[kind]()
        if request.method == "HEAD":
            return HttpResponse(content_type=form.content_type)
        token = begin_export(project_connection(), actor=str(request.user.pk))
        if token is None:
            return _busy()
        run = ExportRun(request, token, form, which, self.get_queryset(request))
        response = ExportResponse(run, _streamed(request, run.pieces(before)))
        name = f"tasks-{timezone.localtime():%Y%m%d-%H%M%S}.{kind}"
        response["Content-Disposition"] = f'attachment; filename="{name}"'
        response["Cache-Control"] = "no-store"
        return response


class ExportRun:
    """One export, which holds a place from its start until `end`."""

    def __init__(
        self,
        request: HttpRequest,
        token: UUID,
        form: Format,
        which: TaskFilter,
        tasks: QuerySet[Task],
    ) -> None:
        self._request, self._token, self.form = request, token, form
        self._which, self._tasks = which, tasks.only(*task_columns(ExportedTask))
        self._viewer = request.user
        self._ends_at = time.monotonic() + LONGEST
        self._renew_at = time.monotonic() + KEPT.total_seconds() / 4
        self._has_ended = False

    def pieces(self, before: str) -> Generator[str, None, None]:
        """Yield the heading before anything is searched, then a piece for each batch."""
        try:
            yield self.form.heading()
            yield from self._batches(before)
        finally:
            self.end()

    def _row(self, task: Task) -> Any:
        return json_form(task_as(ExportedTask, task, self._viewer))

    def _batches(self, before: str) -> Iterator[str]:
        left, cursor, spent = MOST_ROWS, before, 0.0
        while True:
            begun = time.monotonic()
            limit = min(BATCH, left)
            page = find(self._which, tasks=self._tasks, before=cursor, limit=limit, effort=EFFORT)
            left, cursor = left - len(page.tasks), page.older
            piece = self.form.rows(map(self._row, page.tasks))
            spent += time.monotonic() - begun
            if piece:
                yield piece
            if not cursor:
                return
            if left <= 0 or spent >= MOST_SECONDS or not self._renew():
                address = self._address(cursor)
                yield self.form.incomplete(searched_to=page.searched_to, address=address)
                return

    def end(self) -> None:
        """Release the place; if the database is away, it expires."""
        if not self._has_ended:
            self._has_ended = True
            with suppress(Error, SynchronousOnlyOperation):
                end_export(project_connection(), self._token)

    def _renew(self) -> bool:
        """Whether the place is held, and may be held for longer."""
        now = time.monotonic()
        if now >= self._ends_at:
            return False
        if now < self._renew_at:
            return True
        self._renew_at = now + KEPT.total_seconds() / 4
        return renew_export(project_connection(), self._token)

    def _address(self, cursor: str) -> str:
        """Return the address at which the export continues."""
        asked = {**self._request.GET.dict(), "before": cursor}
        return self._request.build_absolute_uri(f"{self._request.path}?{urlencode(asked)}")


class ExportResponse(StreamingHttpResponse):
    """A response that ends the export even if nothing of it was sent."""

    def __init__(self, run: ExportRun, pieces: Any) -> None:
        super().__init__(pieces, content_type=run.form.content_type)
        self._run = run

    def close(self) -> None:
        self._run.end()
        super().close()


def _streamed(
    request: HttpRequest, pieces: Generator[str, None, None]
) -> Iterator[str] | AsyncIterator[str]:
    """Return what the server iterates: ASGI would collect an ordinary iterator in memory."""
    return _asynchronously(pieces) if isinstance(request, ASGIRequest) else pieces


async def _asynchronously(pieces: Generator[str, None, None]) -> AsyncIterator[str]:
    following = sync_to_async(lambda: next(pieces, None), thread_sensitive=True)
    try:
        while (piece := await following()) is not None:
            yield piece
    finally:
        await sync_to_async(pieces.close, thread_sensitive=True)()


def _refused(reason: str, *, status: int = 400) -> HttpResponse:
    return HttpResponse(reason, status=status, content_type="text/plain; charset=utf-8")


def _busy() -> HttpResponse:
    answer = _refused(
        "Other exports are running. Only a few run at a time, and one for each user: try again"
        f" in {RETRY_AFTER} seconds.",
        status=429,
    )
    answer["Retry-After"] = str(RETRY_AFTER)
    return answer
