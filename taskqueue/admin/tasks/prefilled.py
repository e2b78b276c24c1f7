"""The arguments of a task or a schedule as initial values of the enqueue form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.http import HttpRequest

from taskqueue.access.permissions import VIEW_SCHEDULES, VIEW_TASKS
from taskqueue.admin.filters import row_id
from taskqueue.admin.tasks.call_fields import shown_call
from taskqueue.declarations.call_differences import Call
from taskqueue.declarations.parameters import Parameter
from taskqueue.engine.connections import database_alias
from taskqueue.models import Schedule, Task
from taskqueue.monitoring.read_models.base import visible_arguments


def prefilled(request: HttpRequest, name: str, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return initial values by field, from the task or the schedule in the address.

    There are none for a call that the user may not view, or of another definition. Sensitive
    arguments are left for the user to enter.
    """
    row = _row(request)
    if row is None or (row.name if isinstance(row, Task) else row.task_name) != name:
        return {}
    call = visible_arguments(name, row.args, row.kwargs, request.user)
    if call is None:
        return {}
    return shown_call(parameters, Call(*call))


def _row(request: HttpRequest) -> Task | Schedule | None:
    alias, may = database_alias(), request.user.has_perm
    if "schedule" in request.GET and may(VIEW_SCHEDULES):
        number = row_id(request.GET["schedule"]) or 0
        return Schedule.objects.using(alias).filter(pk=number, is_workflow=False).first()
    if "task" in request.GET and may(VIEW_TASKS):
        try:
            key = UUID(request.GET["task"])
        except ValueError:
            return None
        return Task.objects.using(alias).filter(pk=key).only("name", "args", "kwargs").first()
    return None
