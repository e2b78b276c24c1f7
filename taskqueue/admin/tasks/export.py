"""What a search of tasks finds, as CSV or as lines of JSON, sent as it is read."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIRequest
from django.db.models import QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.urls import path
from django.utils import timezone

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.tasks.narrowing import searched
from taskqueue.engine.control import TaskFilter
from taskqueue.models import Task
from taskqueue.monitoring.searching import Effort, SearchError, SearchNotAllowed, find
from taskqueue.permissions import VIEW_ARGUMENTS
from taskqueue.redaction import ShownArguments, redacted

BATCH = 500
MOST_ROWS = 1_000_000
"""An export ends there; who needs more asks the database."""
EFFORT = Effort(largest=200_000, most=2_000_000, windows=20, seconds=2.0)
COLUMNS = (
    "id", "name", "queue_name", "status", "priority", "attempt", "failures", "crashes",
    "enqueued_at", "run_after", "started_at", "finished_at", "unique_key", "schedule_id",
    "nominal_at", "retry_of_id", "error_class", "error_message", "metadata",
)  # fmt: skip
ARGUMENTS = ("args", "kwargs")
FORMULA = re.compile(r"[\t\r\n]|[\s\x00-\x1f\u200b-\u200f\u2060\ufeff]*[=+\-@＝＋－＠]")  # noqa: RUF001
"""How a text begins that a spreadsheet may take for a formula.

Spreadsheets skip blanks before the sign, and read its full-width form as the sign itself.
"""


class TaskExport(ReadOnlyAdmin):
    """`export/?format=csv&q=status:failed`: it reads in batches, each a short query."""

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.export_view)
        return [path("export/", view, name="taskqueue_task_export"), *super().get_urls()]

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """The file, for those who may view tasks."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        form = FORMS.get(request.GET.get("format", "csv"))
        if form is None:
            return _refused(f"There are the formats {', '.join(FORMS)}.")
        try:
            which = searched(request, request.GET.get("q", "")).which
        except SearchNotAllowed as error:
            return _refused(str(error), status=403)
        except SearchError as error:
            return _refused(str(error))
        content_type, lines = form
        if request.method == "HEAD":
            return HttpResponse(content_type=content_type)
        sees_all = request.user.has_perm(VIEW_ARGUMENTS)
        rows = (row_of(task, sees_all) for task in each_task(which, self.get_queryset(request)))
        response = StreamingHttpResponse(_body(request, lines(rows)), content_type=content_type)
        name = f"tasks-{timezone.localtime():%Y%m%d-%H%M%S}.{request.GET.get('format', 'csv')}"
        response["Content-Disposition"] = f'attachment; filename="{name}"'
        response["Cache-Control"] = "no-store"
        return response


def each_task(which: TaskFilter, tasks: QuerySet[Task]) -> Iterator[Task]:
    """The tasks that fit, newest first, up to `MOST_ROWS`, a batch in memory at a time."""
    lean = tasks.only(*COLUMNS, *ARGUMENTS)
    left, cursor = MOST_ROWS, ""
    while left > 0:
        page = find(which, tasks=lean, before=cursor, limit=min(BATCH, left), effort=EFFORT)
        yield from page.tasks
        left -= len(page.tasks)
        cursor = page.older
        if not cursor:
            return


def row_of(task: Task, sees_all: bool) -> dict[str, Any]:
    """The values of a task, with its arguments as its page shows them; null: hidden."""
    shown = redacted(task.name, task.args, task.kwargs)
    if shown is None and sees_all:
        shown = ShownArguments(task.args, task.kwargs)
    row = {name: _plain(getattr(task, name)) for name in COLUMNS}
    args, kwargs = (None, None) if shown is None else shown
    return {**row, "args": args, "kwargs": kwargs}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return value if isinstance(value, int | str | dict | list | None) else str(value)


class _Line:
    """What the writer of CSV takes for a file: it gives each line back."""

    def write(self, text: str) -> str:
        return text


def csv_lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A line of names, then one for each row; texts that look like formulas are disarmed."""
    writer: Any = csv.writer(_Line())
    yield writer.writerow((*COLUMNS, *ARGUMENTS))
    for row in rows:
        yield writer.writerow(map(_cell, row.values()))


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, int):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if FORMULA.match(text) else text


def json_lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """An object for each row."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"


FORMS = {
    "csv": ("text/csv; charset=utf-8", csv_lines),
    "jsonl": ("application/x-ndjson; charset=utf-8", json_lines),
}


def _body(request: HttpRequest, lines: Iterator[str]) -> Iterator[str] | AsyncIterator[str]:
    """What the server iterates: under ASGI it would collect an ordinary iterator in memory."""
    chunks = _chunks(lines)
    return _asynchronously(chunks) if isinstance(request, ASGIRequest) else chunks


def _chunks(lines: Iterator[str]) -> Iterator[str]:
    """Some lines at a time: each piece costs the server as much as a long one."""
    piece: list[str] = []
    for line in lines:
        piece.append(line)
        if len(piece) >= BATCH // 5:
            yield "".join(piece)
            piece.clear()
    yield "".join(piece)


async def _asynchronously(chunks: Iterator[str]) -> AsyncIterator[str]:
    following = sync_to_async(lambda: next(chunks, None), thread_sensitive=True)
    while (chunk := await following()) is not None:
        yield chunk


def _refused(reason: str, *, status: int = 400) -> HttpResponse:
    return HttpResponse(reason, status=status, content_type="text/plain; charset=utf-8")
