"""The log lines of a task as a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed, StreamingHttpResponse

from taskqueue.access.permissions import VIEW_LOGS
from taskqueue.admin.denied import Denied
from taskqueue.admin.reports import LOOKING
from taskqueue.admin.tasks.acts import TaskActs
from taskqueue.admin.tasks.history import lines_of
from taskqueue.monitoring.read_models.attempt import level_name

# The most kilobytes of an attempt's log; a task may have many attempts.
MOST_LINES = 100_000


class TaskLogs(TaskActs):
    """The download of the page's log lines: of all attempts or one, from a level on."""

    def log_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        """Return the lines as plain text, the oldest first."""
        if not (self.has_view_permission(request) and request.user.has_perm(VIEW_LOGS)):
            raise Denied(*self.needed_to_view, VIEW_LOGS)
        if request.method not in LOOKING:
            return HttpResponseNotAllowed(LOOKING)
        task = self.task_of(object_id)
        if task is None:
            return self.missing(request)
        rows = lines_of(request, task.pk).order_by("id")[:MOST_LINES]
        response = StreamingHttpResponse(_text(rows), content_type="text/plain; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="task-{task.pk}.log"'
        response["X-Content-Type-Options"] = "nosniff"
        return response


def _text(rows: Any) -> Iterator[str]:
    for row in rows.iterator():
        at = f"{row.logged_at:%Y-%m-%d %H:%M:%S.%f%z}"
        yield f"{at} {row.attempt} {level_name(row.level)} {row.logger or '-'} {row.message}\n"
