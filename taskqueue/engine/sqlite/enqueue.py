"""Inserting tasks on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import transaction
from taskqueue.engine.rows import Enqueued, Payload, Request, apart_columns
from taskqueue.engine.sqlite.values import clock, microseconds, stored

# Without a target: SQLite would want the condition of the partial index word by word, and Django
# 6.1 writes it in other words than earlier versions do.
INSERT = """
INSERT INTO taskqueue_task (
    id, name, queue_name, status, priority, run_after, args, kwargs, options, metadata,
    attempt, failures, crashes, max_attempts, max_crashes, crash_delay, lease_duration,
    retention, unique_for, holds_unique_key, error_class, error_message, enqueued_at, ready_at,
    deadline_at, expires_at, unique_key, unique_scope, unique_until, ping_interval,
    route, workers, worker_names, pinned_to, broadcast, open_slots
)
VALUES (
    %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,
    0, 0, 0, %s, %s, %s, %s,
    %s, %s, %s, '', '', %s, %s,
    %s, %s, %s, %s, %s, %s,
    %s, %s, %s, %s, %s, %s
)
ON CONFLICT DO NOTHING
"""
ARRIVED = "INSERT INTO taskqueue_arrival (queue_name, name, number) VALUES (%s, %s, %s)"


def now(connection: BaseDatabaseWrapper) -> datetime:
    return clock()


def insert(connection: BaseDatabaseWrapper, request: Request, payload: Payload) -> Enqueued | None:
    return next(iter(_insert(connection, request, [payload])), None)


def insert_many(
    connection: BaseDatabaseWrapper, request: Request, payloads: Sequence[Payload]
) -> list[Enqueued]:
    return _insert(connection, request, payloads)


def _insert(
    connection: BaseDatabaseWrapper, request: Request, payloads: Sequence[Payload]
) -> list[Enqueued]:
    """Insert the tasks and count them, both or neither; nothing where their key is held."""
    with _together(connection), connection.cursor() as cursor:
        moment = request.at or clock()
        if len(payloads) == 1:
            cursor.execute(INSERT, _parameters(request, payloads[0], moment))
        else:
            rows = [_parameters(request, payload, moment) for payload in payloads]
            cursor.executemany(INSERT, rows)
        if not cursor.rowcount:
            return []
        cursor.execute(ARRIVED, (request.queue_name, request.name, cursor.rowcount))
    return [_enqueued(request, payload, moment) for payload in payloads]


def _together(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    """A transaction, unless there is the caller's, where a savepoint would cost as much again."""
    if connection.in_atomic_block or not connection.get_autocommit():
        return nullcontext()
    return transaction(connection)


def _enqueued(request: Request, payload: Payload, moment: datetime) -> Enqueued:
    waits = request.run_after_at(moment) > moment
    return Enqueued(
        payload.id, "scheduled" if waits else "ready", moment, None if waits else moment
    )


def _parameters(request: Request, payload: Payload, moment: datetime) -> tuple[Any, ...]:
    run_after = request.run_after_at(moment)
    waits = run_after > moment
    deadline_at = request.deadline_at or _later(moment, request.deadline_in)
    return (
        payload.id,
        request.name,
        request.queue_name,
        "scheduled" if waits else "ready",
        request.priority,
        stored(run_after),
        payload.args,
        payload.kwargs,
        request.options,
        request.metadata,
        request.max_attempts,
        request.max_crashes,
        microseconds(request.crash_delay),
        microseconds(request.lease_duration),
        microseconds(request.retention),
        request.unique_for if payload.unique_key is not None else "",
        payload.unique_key is not None,
        stored(moment),
        None if waits else stored(moment),
        stored(deadline_at),
        stored(_later(moment, request.expires_in)),
        payload.unique_key,
        request.scope_of(payload),
        stored(_later(moment, request.unique_in)) if payload.unique_key is not None else None,
        microseconds(request.ping_interval),
        *apart_columns(
            workers=request.workers,
            worker_names=request.worker_names,
            broadcast=request.broadcast,
        ),
    )


def _later(moment: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else moment + timedelta(seconds=seconds)
