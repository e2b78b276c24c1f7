"""Export the tasks that a search finds, as CSV or JSON Lines, sent as they are read."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied, SynchronousOnlyOperation
from django.core.handlers.asgi import ASGIRequest
from django.db import Error
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.reports import LOOKING
from taskqueue.admin.tasks.narrowing import searched
from taskqueue.engine.connections import project_connection
from taskqueue.engine.exports import KEPT, begin_export, end_export, renew_export
from taskqueue.monitoring.exporting import FORMATS, Format
from taskqueue.monitoring.read_models.base import json_form
from taskqueue.monitoring.read_models.task import ExportedTask, task_as, task_columns
from taskqueue.monitoring.searching.finding import Effort, Page, find
from taskqueue.monitoring.searching.orders import is_cursor
from taskqueue.monitoring.searching.search import SearchNotAllowed
from taskqueue.monitoring.searching.search_tokens import SearchError

BATCH = 500
MOST_ROWS = 1_000_000
# How long an export searches, not counting the client's reading; then it says where to continue.
# Servers often end a request after 30 s.
MOST_SECONDS = 15.0
# How many seconds an export holds its place, however slowly the client reads; then it also says
# where to continue. Few exports run at a time, and a client that reads a line a minute would keep
# out all others.
LONGEST = 120.0
EFFORT = Effort(largest=200_000, most=2_000_000, windows=20, seconds=2.0)
RETRY_AFTER = 15
BUSY = (
    "Other exports are running. Only a few run at a time, and one for each user: try again"
    f" in {RETRY_AFTER} seconds."
)


class TaskExport(ReadOnlyAdmin):
    """`export/?format=csv&q=status:failed`: it reads in batches, each a short query."""

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Return the file, for users who may view tasks."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in LOOKING:
            return HttpResponseNotAllowed(LOOKING)
        kind, before = request.GET.get("format", "csv"), request.GET.get("before", "")
        if kind not in FORMATS:
            return _refused(f"There are the formats {', '.join(FORMATS)}.")
        if before and not is_cursor(before):
            return _refused("`before` is not what the last line of an export gave.")
        try:
            which = searched(request, request.GET.get("q", "")).which
        except SearchError as error:
            return _refused(str(error), status=403 if isinstance(error, SearchNotAllowed) else 400)
        form = FORMATS[kind]()
        if request.method == "HEAD":
            return HttpResponse(content_type=form.content_type)
        token = begin_export(project_connection(), actor=str(request.user.pk))
        if token is None:
            return _refused(BUSY, status=429, headers={"Retry-After": str(RETRY_AFTER)})
        tasks = self.get_queryset(request).only(*task_columns(ExportedTask))
        response = ExportResponse(request, token, form, partial(find, which, tasks=tasks))
        name = f"tasks-{timezone.localtime():%Y%m%d-%H%M%S}.{kind}"
        response["Content-Disposition"] = f'attachment; filename="{name}"'
        response["Cache-Control"] = "no-store"
        return response


class ExportResponse(StreamingHttpResponse):
    """One export, which holds its place until it ends, even if nothing was sent."""

    def __init__(
        self, request: HttpRequest, token: UUID, form: Format, find_page: Callable[..., Page]
    ) -> None:
        self._request, self._token, self._form, self._find = request, token, form, find_page
        self._ends_at = time.monotonic() + LONGEST
        self._renew_at = time.monotonic() + KEPT.total_seconds() / 4
        self._has_ended = False
        pieces = self._pieces(request.GET.get("before", ""))
        # ASGI would collect an ordinary iterator in memory.
        sent: Any = _asynchronously(pieces) if isinstance(request, ASGIRequest) else pieces
        super().__init__(sent, content_type=form.content_type)

    def close(self) -> None:
        self._end()
        super().close()

    def _pieces(self, before: str) -> Generator[str, None, None]:
        """Yield the heading before anything is searched, then a piece for each batch."""
        try:
            yield self._form.heading()
            yield from self._batches(before)
        finally:
            self._end()

    def _batches(self, cursor: str) -> Iterator[str]:
        left, spent = MOST_ROWS, 0.0
        while True:
            begun = time.monotonic()
            page = self._find(before=cursor, limit=min(BATCH, left), effort=EFFORT)
            left, cursor = left - len(page.tasks), page.older
            piece = self._form.rows(
                json_form(task_as(ExportedTask, task, self._request.user)) for task in page.tasks
            )
            spent += time.monotonic() - begun
            if piece:
                yield piece
            if not cursor:
                return
            if left <= 0 or spent >= MOST_SECONDS or not self._renew():
                asked = urlencode({**self._request.GET.dict(), "before": cursor})
                address = self._request.build_absolute_uri(f"{self._request.path}?{asked}")
                yield self._form.incomplete(searched_to=page.searched_to, address=address)
                return

    def _end(self) -> None:
        """Release the place; if the database is away, the place expires."""
        if not self._has_ended:
            self._has_ended = True
            with suppress(Error, SynchronousOnlyOperation):
                end_export(project_connection(), self._token)

    def _renew(self) -> bool:
        """Return whether the place is still held, and may be held for longer."""
        now = time.monotonic()
        if self._renew_at <= now < self._ends_at:
            self._renew_at = now + KEPT.total_seconds() / 4
            return renew_export(project_connection(), self._token)
        return now < self._ends_at


async def _asynchronously(pieces: Generator[str, None, None]) -> AsyncIterator[str]:
    following = sync_to_async(lambda: next(pieces, None), thread_sensitive=True)
    try:
        while (piece := await following()) is not None:
            yield piece
    finally:
        await sync_to_async(pieces.close, thread_sensitive=True)()


def _refused(
    reason: str, *, status: int = 400, headers: dict[str, str] | None = None
) -> HttpResponse:
    plain = "text/plain; charset=utf-8"
    return HttpResponse(reason, status=status, content_type=plain, headers=headers)
