"""Enqueue by hand: as code does, and audited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.transaction import atomic

from taskqueue.definitions import Definition
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person


def enqueue_by_hand(
    definition: Definition[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    by: object = "",
    reason: str = "",
) -> Any:
    """Enqueue a task of the definition; the `TaskResult`. The audit tells nothing of arguments.

    Raises as `Definition.enqueue` does, and writes nothing then.
    """
    connection = project_connection()
    with atomic(using=connection.alias):
        result = definition.enqueue(*args, **kwargs)
        if result.created:
            where = f"{definition.name} on {definition.options.queue_name}"
            act = Act(str(result.id), detail=where)
            audit(connection, "enqueue", [act], person=person(by, reason))
    return result
