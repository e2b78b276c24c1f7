"""The arguments of a task or a schedule, as the form that enqueues shows them to begin with."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.http import HttpRequest

from taskqueue.access.permissions import VIEW_SCHEDULES, VIEW_TASKS
from taskqueue.admin.filters import row_id
from taskqueue.admin.tasks.parameter_fields import field_name, needs_null_box, null_name
from taskqueue.declarations.parameters import Parameter
from taskqueue.declarations.redaction import REDACTED
from taskqueue.engine.connections import database_alias
from taskqueue.models import Schedule, Task
from taskqueue.monitoring.read_models.base import visible_arguments

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def prefilled(request: HttpRequest, name: str, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return initial values by field, from the task or the schedule in the address.

    There are none of a call that the user may not view, or of another definition. Sensitive
    arguments are left for the user to give.
    """
    row = _row(request)
    if row is None or (row.name if isinstance(row, Task) else row.task_name) != name:
        return {}
    call = visible_arguments(name, row.args, row.kwargs, request.user)
    if call is None:
        return {}
    values = dict(_by_name(call.args, call.kwargs, parameters))
    found: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name not in values or parameter.is_sensitive:
            continue
        value = values[parameter.name]
        if value is None and needs_null_box(parameter):
            found[null_name(parameter)] = True
        elif value != REDACTED:
            found[field_name(parameter)] = _shown(parameter, value)
    return found


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


def _by_name(
    args: list[Any], kwargs: dict[str, Any], parameters: Sequence[Parameter]
) -> Iterator[tuple[str, Any]]:
    """Yield the value of each parameter; the rest as that of `*` or `**`, if there is one."""
    names = [each.name for each in parameters if each.place in POSITIONAL]
    yield from zip(names, args, strict=False)
    known = {each.name for each in parameters}
    further = {key: value for key, value in kwargs.items() if key not in known}
    for parameter in parameters:
        if parameter.place is inspect.Parameter.VAR_POSITIONAL and args[len(names) :]:
            yield parameter.name, args[len(names) :]
        elif parameter.place is inspect.Parameter.VAR_KEYWORD and further:
            yield parameter.name, further
        elif parameter.name in kwargs:
            yield parameter.name, kwargs[parameter.name]


def _shown(parameter: Parameter, value: Any) -> Any:
    """Return the value as the field of the parameter takes it."""
    if parameter.kind in (bool, int, float, str) and isinstance(value, bool | int | float | str):
        return value
    return json.dumps(value, ensure_ascii=False)
