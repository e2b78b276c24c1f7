"""Tasks that hold unique keys, from the view of an enqueue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import JSONField, TextField, Value
from django.db.models.functions import Cast

from taskqueue.declarations.options import SNAPSHOT, Options
from taskqueue.declarations.together import check_together
from taskqueue.engine.dialect import execute
from taskqueue.engine.payloads import Enqueued, Payload
from taskqueue.engine.specs import OPTION_COLUMNS, EnqueueSpec, claim_columns
from taskqueue.engine.statement import Statement
from taskqueue.models import Task
from taskqueue.models.task import Route

# How often an enqueue looks for the holder of its key if each holder disappears meanwhile.
TRIES = 20

# Locks: the row of the holder.
RELEASE = Statement.of("""
    UPDATE taskqueue_task
    SET holds_unique_key = false
    WHERE unique_key = %(key)s AND unique_scope = %(scope)s AND holds_unique_key
        AND unique_until <= {now}
""")


def holder_of(connection: BaseDatabaseWrapper, spec: EnqueueSpec, payload: Payload) -> Task | None:
    """Return the task that holds the key; None if there is none."""
    held = Task.objects.using(connection.alias).filter(holds_unique_key=True)
    return held.filter(unique_key=payload.unique_key, unique_scope=spec.unique_scope).first()


def release_expired(connection: BaseDatabaseWrapper, scope: str, unique_key: str) -> bool:
    """Release a key whose holding time is over. Return whether there was one."""
    return execute(connection, RELEASE, key=unique_key, scope=scope) > 0


def enqueued_of(holder: Task, *, updated: bool = False) -> Enqueued:
    """Return the result of an enqueue that has found this task."""
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

    The keys of its limits may be made from the arguments. A holder for several or for named workers
    keeps these: it was enqueued before its definition was limited.
    """
    columns: dict[str, Any] = {"args": _json(payload.args), "kwargs": _json(payload.kwargs)}
    if holder.route == Route.APART:
        return columns
    if payload.placement is not None:
        partition, limits = payload.placement
        columns |= {"partition": partition, "limits": _json(limits), "route": Route.PARTITION.value}
    elif holder.partition is not None:
        columns |= {"partition": None, "limits": None, "route": Route.ORDINARY.value}
    return columns


# Options that decide which claim takes the task.
_ROUTING = frozenset({"workers", "worker_names", "broadcast"})
_AS_THEY_ARE = frozenset(OPTION_COLUMNS) - _ROUTING - {"restart"}
_IN_SNAPSHOT = frozenset(option.name for option in SNAPSHOT)


def options_of(
    spec: EnqueueSpec,
    payload: Payload,
    holder: Task,
    *,
    now: datetime,
    begins_anew: bool = False,
) -> dict[str, Any]:
    """Return the columns of a holder that change because a call named options.

    Unless the task begins anew, it keeps its number of workers once a worker has succeeded. Raises
    `InvalidTask` if the options conflict with other options of the task.
    """
    given = spec.given
    wanted = spec.columns_at(now)
    columns: dict[str, Any] = {name: wanted[name] for name in _AS_THEY_ARE & given}
    if "deadline" in given:
        columns["deadline_at"] = wanted["deadline_at"]
    if "expires_after" in given:
        columns["expires_at"] = wanted["expires_at"]
    if not given.isdisjoint(_IN_SNAPSHOT):
        own = json.loads(spec.options)
        kept = {name: value for name, value in holder.options.items() if name not in given}
        named = {name: own[name] for name in _IN_SNAPSHOT & given if name in own}
        columns["options"] = kept | named
    has_moved = begins_anew or not holder.successes
    if not given.isdisjoint(_ROUTING) and payload.placement is None and has_moved:
        columns |= _routing_of(spec, holder)
    changed = {name: value for name, value in columns.items() if getattr(holder, name) != value}
    if "metadata" in given and json.loads(spec.metadata) != holder.metadata:
        changed["metadata"] = _json(spec.metadata)
    if changed:
        _check_together(holder, changed)
    return changed


def _routing_of(spec: EnqueueSpec, holder: Task) -> dict[str, Any]:
    broadcast = spec.broadcast if "broadcast" in spec.given else holder.broadcast
    if broadcast and holder.broadcast:
        return {}
    workers = spec.workers if "workers" in spec.given else max(holder.workers, 1)
    named = "worker_names" in spec.given or holder.broadcast
    names = spec.worker_names if named else holder.worker_names
    columns = claim_columns(workers=workers, worker_names=names, broadcast=broadcast)
    return columns | {"worker_names": None if names is None else list(names)}


def _check_together(holder: Task, changed: Mapping[str, Any]) -> None:
    names = ("workers", "worker_names", "broadcast", "lease_duration", "ping_interval")
    values = {name: changed.get(name, getattr(holder, name)) for name in names}
    if values["broadcast"]:  # The workers of a broadcast are those that it found alive.
        values["worker_names"] = None
    workers, worker_names = max(values["workers"], 1), values["worker_names"]
    if worker_names is not None:
        values["worker_names"] = tuple(worker_names)
    retry_on = changed.get("options", holder.options).get("retry_on", "any")
    options = Options(**values | {"workers": workers, "retry_on": retry_on})
    check_together(options, name=f"Task {holder.id}")


def _json(text: str) -> Cast:
    """Return the text unchanged: rewritten, large floats would come back as integers."""
    return Cast(Value(text, output_field=TextField()), JSONField())
