"""Enqueue: write tasks, in the caller's transaction, one holder a unique key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, JSONField, Q, TextField, Value, When
from django.db.models.functions import Cast
from django.db.transaction import atomic

from taskqueue.engine.connections import project_connection
from taskqueue.engine.rows import Enqueued, Payload, Request
from taskqueue.engine.wording import wording_for
from taskqueue.exceptions import DuplicateTask, TaskQueueError
from taskqueue.models import Task
from taskqueue.states import PENDING, TaskStatus

TRIES = 20
"""How often an enqueue looks for the holder of its key, should each vanish as it looks."""


def enqueue(request: Request, payload: Payload, *, on_duplicate: str) -> Enqueued:
    """Insert one task, or find the one that holds its unique key.

    Raises `DuplicateTask` where a duplicate is to raise.
    """
    connection = project_connection()
    wording = wording_for(connection)
    if payload.unique_key is None:
        enqueued = wording.insert(connection, request, payload)
        if enqueued is None:
            raise TaskQueueError(f"Task {payload.id} exists already.")
        return enqueued
    for _ in range(TRIES):
        enqueued = wording.insert(connection, request, payload)
        if enqueued is not None:
            return enqueued
        if _clear_expired_holder(connection, payload.unique_key):
            continue
        holder = _meet_holder(connection, request, payload, on_duplicate)
        if holder is not None:
            return holder
    raise TaskQueueError(
        f"The holder of the unique key {payload.unique_key!r} changed {TRIES} times while this "
        "task was enqueued. Enqueue it again."
    )


def enqueue_many(
    request: Request, payloads: Sequence[Payload], *, on_duplicate: str
) -> list[Enqueued]:
    """Insert many tasks, all or none, in their order."""
    connection = project_connection()
    plain = not request.claimed_apart and all(each.unique_key is None for each in payloads)
    if not payloads:
        return []
    wording = wording_for(connection)
    # What a duplicate raises must leave the caller a transaction that goes on, without these.
    with atomic(using=connection.alias, savepoint=not plain):
        if plain:
            return wording.insert_many(connection, request, payloads)
        if request.run_at is None:  # One moment for all keeps them first in, first out.
            due = run_after_of(request, wording.now(connection))
            request = request._replace(run_at=due, run_in=None)
        # Two enqueues of the same keys in different orders would wait for each other.
        order = sorted(range(len(payloads)), key=lambda i: payloads[i].unique_key or "")
        found = {i: enqueue(request, payloads[i], on_duplicate=on_duplicate) for i in order}
    return [found[i] for i in range(len(payloads))]


def _clear_expired_holder(connection: BaseDatabaseWrapper, unique_key: str) -> bool:
    """Release a key that was held for a time which is over."""
    now = wording_for(connection).now(connection)
    released = (
        Task.objects.using(connection.alias)
        .filter(unique_key=unique_key, holds_unique_key=True, unique_until__lte=now)
        .update(holds_unique_key=False)
    )
    return bool(released)


def _meet_holder(
    connection: BaseDatabaseWrapper, request: Request, payload: Payload, on_duplicate: str
) -> Enqueued | None:
    holder = (
        Task.objects.using(connection.alias)
        .filter(unique_key=payload.unique_key, holds_unique_key=True)
        .first()
    )
    if holder is None:
        return None
    if on_duplicate == "raise":
        raise DuplicateTask(
            f"Task {holder.id} ({holder.status}) holds the unique key {payload.unique_key!r}.",
            holder.id,
        )
    updated = False
    # Another definition's task has other parameters, and other secrets: it is left as it is.
    if on_duplicate == "replace" and holder.name == request.name:
        updated = _replace(connection, holder, request, payload)
        found = Task.objects.using(connection.alias).filter(id=holder.id, holds_unique_key=True)
        holder = found.first()
        if holder is None:  # It started or ended meanwhile, and released the key.
            return None
    return Enqueued(
        id=holder.id.hex,
        status=holder.status,
        enqueued_at=holder.enqueued_at,
        ready_at=holder.ready_at,
        created=False,
        updated=updated,
    )


def _replace(
    connection: BaseDatabaseWrapper, holder: Task, request: Request, payload: Payload
) -> bool:
    """Give a holder that nobody runs new arguments and a new time."""
    now = wording_for(connection).now(connection)
    run_after = run_after_of(request, now)
    waits = run_after > now
    retrying = When(status=TaskStatus.RETRYING, then=Value(TaskStatus.RETRYING.value))
    waiting = Case(retrying, default=Value(TaskStatus.SCHEDULED.value))
    changed = (
        Task.objects.using(connection.alias)
        .filter(Q(status__in=PENDING), id=holder.id)
        .update(
            args=_json(payload.args),
            kwargs=_json(payload.kwargs),
            run_after=run_after,
            status=waiting if waits else TaskStatus.READY.value,
            ready_at=None if waits else now,
        )
    )
    return bool(changed)


def _json(text: str) -> Cast:
    """The text as it is: written anew, large floats would come back from jsonb as integers."""
    return Cast(Value(text, output_field=TextField()), JSONField())


def run_after_of(request: Request, now: datetime) -> datetime:
    """When the task is due at the earliest."""
    return request.run_at or now + timedelta(seconds=request.run_in or 0)
