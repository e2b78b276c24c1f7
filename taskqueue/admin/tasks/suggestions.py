"""Suggestions of the task list's search box while somebody types."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse

from taskqueue.access.permissions import VIEW_LEASES, VIEW_SCHEDULES
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.reports import LOOKING
from taskqueue.core.states import TaskStatus
from taskqueue.declarations.definition import registry
from taskqueue.engine.connections import database_alias
from taskqueue.models import Queue, Schedule
from taskqueue.monitoring.read_models.failure_group import failures
from taskqueue.monitoring.read_models.worker import read_workers
from taskqueue.monitoring.searching.qualifiers import QUALIFIERS

MOST = 200
# The most failed tasks that are read for error classes.
NEWEST = 1_000


class TaskSuggestions(ReadOnlyAdmin):
    """The possible words of a search, as JSON; requested once for each page."""

    def suggest_view(self, request: HttpRequest) -> HttpResponse:
        """Return the known values of each qualifier; qualifiers without any take free text."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in LOOKING:
            return HttpResponseNotAllowed(LOOKING)
        known = _known(request.user)
        response = JsonResponse({key: known.get(key, []) for key in QUALIFIERS})
        response["Cache-Control"] = "private, max-age=60"
        return response


def _known(user: Any) -> dict[str, list[str]]:
    alias = database_alias()
    errors = sorted({group.error_class for group in failures(newest=NEWEST).groups} - {""})
    moments = ["1h", "1d", "7d"]
    found = {
        "status": [status.value for status in TaskStatus],
        "name": sorted(definition.name for definition in registry.all())[:MOST],
        "queue": _names(Queue.objects.using(alias)),
        "error": sorted({error.rpartition(".")[2] for error in errors}),
        "class": errors,
        "after": moments, "before": moments, "finished_after": moments,
        "finished_before": moments, "failed_after": moments,
    }  # fmt: skip
    if user.has_perm(VIEW_LEASES):
        found["worker"] = [worker.name for worker in read_workers(limit=MOST)]
    if user.has_perm(VIEW_SCHEDULES):
        found["schedule"] = _names(Schedule.objects.using(alias))
    return found


def _names(rows: Any) -> list[str]:
    return list(rows.order_by("name").values_list("name", flat=True)[:MOST])
