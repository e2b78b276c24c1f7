"""Enqueue by hand: as code does, and audited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from taskqueue.definitions import Definition
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.once import once
from taskqueue.exceptions import DuplicateTask, EnqueuedBefore
from taskqueue.results.enqueueing import enqueue


def enqueue_by_hand(
    definition: Definition[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    by: object = "",
    reason: str = "",
    new_id: UUID | None = None,
) -> Any:
    """Enqueue a task of the definition; the `TaskResult`. The audit tells nothing of arguments.

    `new_id` is the new task's; asked for twice, it is enqueued once. Raises as
    `Definition.enqueue` does, `EnqueuedBefore` the second time, and writes nothing then.
    """
    connection = project_connection()
    with once(connection, new_id) as task_id:
        try:
            result = enqueue(definition, args, kwargs, task_id=task_id)
        except DuplicateTask as error:
            _refuse_itself(error.result, new_id, definition)
            raise
        if not result.created:
            _refuse_itself(result, new_id, definition)
        else:
            where = f"{definition.name} on {definition.options.queue_name}"
            act = Act(str(result.id), detail=where)
            audit(connection, "enqueue", [act], person=person(by, reason))
    return result


def _refuse_itself(holder: Any, new_id: UUID | None, definition: Definition[..., Any]) -> None:
    """The holder of a unique key may be what was enqueued the first time."""
    if new_id is not None and holder.id == new_id:
        raise EnqueuedBefore(new_id, definition.name)
