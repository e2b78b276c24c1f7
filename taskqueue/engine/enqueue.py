"""Enqueue: write tasks, in the caller's transaction, one holder a unique key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.republish import meet_holder
from taskqueue.engine.specs import Enqueued, EnqueueSpec, Payload
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Task

# How often an enqueue looks for the holder of its key, should each vanish as it looks.
TRIES = 20


def enqueue(spec: EnqueueSpec, payload: Payload, *, on_duplicate: str) -> Enqueued:
    """Insert one task, or find the one that holds its unique key.

    Raises `DuplicateTask` where a duplicate is to raise.
    """
    connection = project_connection()
    dialect = dialect_for(connection)
    if payload.unique_key is None:
        enqueued = dialect.insert(connection, spec, payload)
        if enqueued is None:
            raise TaskQueueError(f"Task {payload.id} exists already.")
        return enqueued
    for _ in range(TRIES):
        enqueued = dialect.insert(connection, spec, payload)
        if enqueued is not None:
            return enqueued
        if _clear_expired_holder(connection, spec.unique_scope, payload.unique_key):
            continue
        holder = meet_holder(connection, spec, payload, on_duplicate=on_duplicate)
        if holder is not None:
            return holder
    raise TaskQueueError(
        f"The holder of the unique key {payload.unique_key!r} of {spec.unique_scope} changed "
        f"{TRIES} times while this task was enqueued. Enqueue it again."
    )


def enqueue_many(
    spec: EnqueueSpec, payloads: Sequence[Payload], *, on_duplicate: str
) -> list[Enqueued]:
    """Insert many tasks, all or none, in their order."""
    connection = project_connection()
    plain = not spec.is_apart and all(payload.unique_key is None for payload in payloads)
    if not payloads:
        return []
    dialect = dialect_for(connection)
    # What a duplicate raises must leave the caller a transaction that goes on, without these.
    with atomic(using=connection.alias, savepoint=not plain):
        if plain:
            return dialect.insert_many(connection, spec, payloads)
        if spec.at is None:  # One moment for all keeps them first in, first out.
            spec = replace(spec, at=dialect.now(connection))
        # Two enqueues of the same keys in different orders would wait for each other.
        order = sorted(range(len(payloads)), key=lambda i: payloads[i].unique_key or "")
        results = {i: enqueue(spec, payloads[i], on_duplicate=on_duplicate) for i in order}
    return [results[i] for i in range(len(payloads))]


def _clear_expired_holder(connection: BaseDatabaseWrapper, scope: str, unique_key: str) -> bool:
    """Release a key that was held for a time which is over."""
    now = dialect_for(connection).now(connection)
    released = (
        Task.objects.using(connection.alias)
        .filter(
            unique_key=unique_key,
            unique_scope=scope,
            holds_unique_key=True,
            unique_until__lte=now,
        )
        .update(holds_unique_key=False)
    )
    return bool(released)
