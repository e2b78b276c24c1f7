"""What the tasks of a schedule share, as it is kept in the schedule's row."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from taskqueue.declarations.declared_schedules import definition_of, encode_call
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.option_kinds import Seconds
from taskqueue.declarations.options import COLUMNS
from taskqueue.declarations.scheduled import Scheduled
from taskqueue.engine.requests import request_of
from taskqueue.engine.rows import Request
from taskqueue.exceptions import InvalidSchedule

DURATIONS = tuple(option.name for option in COLUMNS if isinstance(option.kind, Seconds))


def snapshot_of(scheduled: Scheduled, definition: BaseDefinition[Any, Any]) -> dict[str, Any]:
    """The request as plain JSON, with the arguments and the unique key. Raises `InvalidSchedule`.

    A callable that makes the unique key is called here, for the arguments are always the same.
    """
    own = definition_of(scheduled, definition)
    args, kwargs, unique_key = encode_call(scheduled, definition)
    request = request_of(own)
    values = request._asdict()
    for name in DURATIONS:
        values[name] = None if values[name] is None else values[name].total_seconds()
    if request.deadline_at is not None:
        values["deadline_at"] = request.deadline_at.isoformat()
    if request.worker_names is not None:
        values["worker_names"] = list(request.worker_names)
    return {
        "request": values,
        "args": args,
        "kwargs": kwargs,
        "unique_key": unique_key,
    }


def request_from(snapshot: dict[str, Any]) -> Request:
    """The request again. Raises `InvalidSchedule` if another version wrote it."""
    values = dict(snapshot["request"])
    for name in DURATIONS:
        if values.get(name) is not None:
            values[name] = timedelta(seconds=values[name])
    if values.get("deadline_at") is not None:
        values["deadline_at"] = datetime.fromisoformat(values["deadline_at"])
    if values.get("worker_names") is not None:
        values["worker_names"] = tuple(values["worker_names"])
    try:
        return Request(**values)
    except TypeError as error:
        raise InvalidSchedule(
            f"Its request was written by another version of taskqueue ({error}). It is written "
            "anew when a worker starts that knows the task."
        ) from None
