"""Inserting tasks on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.lazy import LazySequence
from taskqueue.engine.connections import transaction
from taskqueue.engine.payloads import (
    NO_KEY,
    NOT_PLACED,
    OWN_COLUMNS,
    Enqueued,
    Payload,
    payload_columns,
)
from taskqueue.engine.specs import COLUMNS, DURATIONS, EnqueueSpec
from taskqueue.engine.sqlite.values import clock, microseconds, stored
from taskqueue.engine.statement import fetch

# Without a conflict target, for which SQLite would need the condition of the partial index word by
# word; Django 6.1 writes it differently from earlier versions.
INSERT = f"""
INSERT INTO taskqueue_task ({", ".join(COLUMNS)})
VALUES ({", ".join("%s" for _ in COLUMNS)})
ON CONFLICT DO NOTHING
"""  # noqa: S608  (the columns are constants)
in_order, in_order_behind_own = itemgetter(*COLUMNS), itemgetter(*COLUMNS[len(OWN_COLUMNS) :])
TIMES = "run_after", "enqueued_at", "ready_at", "deadline_at", "expires_at", "unique_until"
INSERTED = "SELECT id FROM taskqueue_task WHERE id IN (SELECT value FROM json_each(%s))"
ARRIVED = "INSERT INTO taskqueue_arrival (queue_name, name, number) VALUES (%s, %s, %s)"


def insert(connection: BaseDatabaseWrapper, spec: EnqueueSpec, payload: Payload) -> Enqueued | None:
    return next(iter(insert_many(connection, spec, [payload])), None)


def insert_many(
    connection: BaseDatabaseWrapper, spec: EnqueueSpec, payloads: Sequence[Payload]
) -> Sequence[Enqueued]:
    """Insert the tasks and count them, both or neither; insert none whose key is held."""
    with _together(connection), connection.cursor() as cursor:
        shared = spec.columns_at(spec.at or clock())
        times = shared["status"], shared["enqueued_at"], shared["ready_at"]
        for column in TIMES:
            shared[column] = stored(shared[column])
        for column in DURATIONS:
            shared[column] = microseconds(shared[column])
        without_key = in_order_behind_own({**shared, **NO_KEY, **NOT_PLACED})
        rows = [
            (*payload[: len(OWN_COLUMNS)], *without_key)
            if payload.unique_key is None and payload.placement is None
            else in_order({**shared, **payload_columns(payload)})
            for payload in payloads
        ]
        if len(rows) == 1:
            cursor.execute(INSERT, rows[0])
        else:
            cursor.executemany(INSERT, rows)
        if not cursor.rowcount:
            return []
        cursor.execute(ARRIVED, (spec.queue_name, spec.name, cursor.rowcount))
    return LazySequence(len(payloads), lambda place: Enqueued(payloads[place].id, *times))


def insert_keyed(
    connection: BaseDatabaseWrapper, spec: EnqueueSpec, payloads: Sequence[Payload]
) -> list[Enqueued]:
    if not payloads:
        return []
    with _together(connection):
        enqueued = insert_many(connection, spec, payloads)
        ids = json.dumps([payload.id for payload in payloads])
        inserted = {id for (id,) in fetch(connection, INSERTED, [ids])}
    return [each for each in enqueued if each.id in inserted]


def _together(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    """Return a transaction; none within the caller's, where a savepoint would double the cost."""
    if connection.in_atomic_block or not connection.get_autocommit():
        return nullcontext()
    return transaction(connection)
