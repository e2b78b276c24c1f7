"""Tasks that hold unique keys, as an enqueue meets them."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import JSONField, TextField, Value
from django.db.models.functions import Cast

from taskqueue.engine.dialect import execute
from taskqueue.engine.specs import Enqueued, EnqueueSpec, Payload
from taskqueue.engine.statement import Statement
from taskqueue.models import Task
from taskqueue.models.task import Route

# How often an enqueue looks for the holder of its key, should each vanish as it looks.
TRIES = 20

# Locks: the row of the holder.
RELEASE = Statement.of("""
    UPDATE taskqueue_task
    SET holds_unique_key = false
    WHERE unique_key = %(key)s AND unique_scope = %(scope)s AND holds_unique_key
        AND unique_until <= {now}
""")


def holder_of(connection: BaseDatabaseWrapper, spec: EnqueueSpec, payload: Payload) -> Task | None:
    """Return the task that holds the key; None if nobody does."""
    held = Task.objects.using(connection.alias).filter(holds_unique_key=True)
    return held.filter(unique_key=payload.unique_key, unique_scope=spec.unique_scope).first()


def release_expired(connection: BaseDatabaseWrapper, scope: str, unique_key: str) -> bool:
    """Release a key that was held for a time which is over; whether it was."""
    return execute(connection, RELEASE, key=unique_key, scope=scope) > 0


def enqueued_of(holder: Task, *, updated: bool = False) -> Enqueued:
    """Return what an enqueue tells of a task that is there already."""
    return Enqueued(
        id=holder.id.hex,
        status=holder.status,
        enqueued_at=holder.enqueued_at,
        ready_at=holder.ready_at,
        created=False,
        updated=updated,
        name=holder.name,
    )


def arguments_of(payload: Payload, holder: Task) -> dict[str, Any]:
    """Return the columns of a holder that gets the arguments of another call.

    The keys of its limits may be made of them.
    """
    columns: dict[str, Any] = {"args": _json(payload.args), "kwargs": _json(payload.kwargs)}
    if payload.placement is not None:
        partition, limits = payload.placement
        columns |= {"partition": partition, "limits": _json(limits), "route": Route.PARTITION.value}
    elif holder.partition is not None:
        columns |= {"partition": None, "limits": None, "route": Route.ORDINARY.value}
    return columns


def _json(text: str) -> Cast:
    """The text as it is: written anew, large floats would come back from jsonb as integers."""
    return Cast(Value(text, output_field=TextField()), JSONField())
