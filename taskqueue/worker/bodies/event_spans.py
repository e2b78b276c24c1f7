"""Find the span that an event is about, so that spans of handlers and deliveries link to it."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from taskqueue.declarations.handlers import declared
from taskqueue.declarations.own_tasks import DELIVER
from taskqueue.engine.connections import database_alias
from taskqueue.models import Delivery, Task
from taskqueue.tracing.metadata import PARENT


def spans_of_event(name: str, args: str, kwargs: str) -> list[str]:
    """Return the span that enqueued the subject of such a task's event, if it has one."""
    if name == DELIVER["name"]:
        return _of_delivery(json.loads(kwargs)["delivery"])
    if name in declared():
        (event,) = json.loads(args)
        return _of(event.get("task"), event.get("workflow"))
    return []


def _of_delivery(delivery: str) -> list[str]:
    rows = Delivery.objects.using(database_alias()).filter(id=UUID(delivery))
    payload: dict[str, Any] = rows.values_list("payload", flat=True).first() or {}
    noun = str(payload.get("type", "")).partition(".")[0]
    about = payload.get("data", {}).get("id")
    if noun == "task":
        return _of(about, None)
    return _of(None, about) if noun in ("workflow", "step") else []


def _of(task_id: str | None, workflow_id: str | None) -> list[str]:
    tasks = Task.objects.using(database_alias())
    if task_id is not None:
        rows = tasks.filter(id=UUID(task_id))
    elif workflow_id is not None:
        rows = tasks.filter(step__workflow_id=UUID(workflow_id)).order_by("id")
    else:
        return []
    metadata = rows.values_list("metadata", flat=True).first() or {}
    parent = metadata.get(PARENT)
    return [parent] if isinstance(parent, str) else []
