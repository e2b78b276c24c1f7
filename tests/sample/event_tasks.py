"""A task that tests declare as a handler of events; what it hears is kept in the database."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from taskqueue import Context, task
from tests.sample.models import Effect


@task(takes_context=True)
def keep_event(context: Context, event: dict[str, Any]) -> None:
    """Keeps the event, under the task that it is about."""
    Effect.objects.create(
        task_id=UUID(event["task"]), attempt=context.attempt, note=json.dumps(event)
    )


def heard(task_id: object) -> list[dict[str, Any]]:
    """The events of a task that were heard."""
    notes = Effect.objects.filter(task_id=str(task_id)).values_list("note", flat=True)
    return [json.loads(note) for note in notes]
