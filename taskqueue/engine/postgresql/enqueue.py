"""Inserting tasks on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.notify import ANYWHERE
from taskqueue.engine.payloads import OWN_COLUMNS, Enqueued, Payload, payload_columns
from taskqueue.engine.specs import COLUMNS, EnqueueSpec
from taskqueue.engine.statement import fetch
from taskqueue.models.task import Route

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# A procedure of the migration inserts the row and its arrival, and notifies if a worker sleeps.
# Parameters are passed by position, in the order of `PLAIN_PARAMETERS`: matching names took the
# server a twentieth of the call. The last two are `enqueued_at` and `microseconds`.
INSERT_PLAIN = "CALL taskqueue_enqueue({arguments}, statement_timestamp(), NULL)"

# The times of new tasks: by the clock, or one moment that many share.
_TIMES = """
clock AS MATERIALIZED (
    SELECT COALESCE(%(at)s::timestamptz, clock_timestamp()) AS now
), times AS MATERIALIZED (
    SELECT
        now,
        GREATEST(
            COALESCE(%(run_at)s::timestamptz, now + %(run_in)s::float8 * interval '1 second'), now
        ) AS run_after,
        COALESCE(
            %(deadline_at)s::timestamptz, now + %(deadline_in)s::float8 * interval '1 second'
        ) AS deadline_at,
        now + %(expires_in)s::float8 * interval '1 second' AS expires_at,
        now + %(unique_in)s::float8 * interval '1 second' AS unique_until
    FROM clock
)"""
_VALUES = {column: f"%({column})s" for column in COLUMNS} | {
    "status": "CASE WHEN run_after > now THEN 'scheduled' ELSE 'ready' END",
    "run_after": "run_after",
    "enqueued_at": "now",
    "ready_at": "CASE WHEN run_after > now THEN NULL ELSE now END",
    "deadline_at": "deadline_at",
    "expires_at": "expires_at",
    "unique_until": "unique_until",
}
# Locks: the unique key's index entry; waits for a transaction that is inserting the same key.
INSERT = f"""
WITH {_TIMES}, task AS (
    INSERT INTO taskqueue_task ({", ".join(_VALUES)})
    SELECT {", ".join(_VALUES.values())}
    FROM times
    ON CONFLICT (unique_key, unique_scope) WHERE holds_unique_key DO NOTHING
    RETURNING status, enqueued_at, ready_at, queue_name, name, route
), counted AS (
    INSERT INTO taskqueue_arrival (id, queue_name, name, number)
    SELECT 0, queue_name, name, 1
    FROM task
)
SELECT
    status, enqueued_at, ready_at,
    (
        SELECT pg_notify(
            'taskqueue',
            CASE WHEN task.status = 'ready' AND task.route = 0 THEN task.queue_name ELSE '' END
        )
        FROM taskqueue_worker
        WHERE is_idle
        LIMIT 1
    )
FROM task
"""  # noqa: S608  (the columns are constants)

_OWN = {
    "id": "own.id",
    "args": "own.args::jsonb",
    "kwargs": "own.kwargs::jsonb",
    "unique_key": "own.unique_key",
    "holds_unique_key": "true",
    "partition": "own.partition",
    "limits": "own.limits::jsonb",
    "route": f"CASE WHEN own.partition IS NULL THEN %(route)s ELSE {Route.PARTITION.value} END",
}
# Locks: the unique keys' index entries, in the order of the rows; waits in the same way.
INSERT_KEYED = f"""
WITH {_TIMES}, task AS (
    INSERT INTO taskqueue_task ({", ".join(_VALUES)})
    SELECT {", ".join((_VALUES | _OWN).values())}
    FROM times
    CROSS JOIN unnest(
        %(ids)s::uuid[], %(all_args)s::text[], %(all_kwargs)s::text[], %(keys)s::text[],
        %(partitions)s::uuid[], %(all_limits)s::text[]
    ) WITH ORDINALITY AS own (id, args, kwargs, unique_key, partition, limits, place)
    ORDER BY own.place
    ON CONFLICT (unique_key, unique_scope) WHERE holds_unique_key DO NOTHING
    RETURNING id, status, enqueued_at, ready_at
), counted AS (
    INSERT INTO taskqueue_arrival (id, queue_name, name, number)
    SELECT 0, %(queue_name)s, %(name)s, count(*)
    FROM task
    HAVING count(*) > 0
)
SELECT
    id, status, enqueued_at, ready_at,
    (SELECT pg_notify('taskqueue', '{ANYWHERE}') FROM taskqueue_worker WHERE is_idle LIMIT 1)
FROM task
"""  # noqa: S608  (the columns are constants)


def insert(connection: BaseDatabaseWrapper, spec: EnqueueSpec, payload: Payload) -> Enqueued | None:
    """Insert one task. Return None if another task holds its unique key."""
    id, args, kwargs, unique_key, placement = payload
    if spec.is_plain and unique_key is None and placement is None:
        rows = fetch(connection, _call_of(spec.plain_values), (id, args, kwargs))
        # In microseconds, because Django's conversion of datetimes costs a tenth of the statement.
        at = EPOCH + timedelta(microseconds=rows[0][0])
        return Enqueued(id, "ready", at, at)
    rows = fetch(connection, INSERT, spec.parameters | payload_columns(payload))
    if not rows:
        return None
    status, enqueued_at, ready_at, _ = rows[0]
    return Enqueued(payload.id, status, utc(enqueued_at), ready_at and utc(ready_at))


def insert_keyed(
    connection: BaseDatabaseWrapper, spec: EnqueueSpec, payloads: Sequence[Payload]
) -> list[Enqueued]:
    """Insert tasks whose unique keys nobody holds, in this order.

    Return those that were inserted.
    """
    if not payloads:
        return []
    placements = [payload.placement for payload in payloads]
    own = {
        "ids": [payload.id for payload in payloads],
        "all_args": [payload.args for payload in payloads],
        "all_kwargs": [payload.kwargs for payload in payloads],
        "keys": [payload.unique_key for payload in payloads],
        "partitions": [placement and placement.partition for placement in placements],
        "all_limits": [placement and placement.limits for placement in placements],
    }
    rows = fetch(connection, INSERT_KEYED, spec.parameters | own)
    return [
        Enqueued(id.hex, status, utc(enqueued_at), ready_at and utc(ready_at))
        for id, status, enqueued_at, ready_at, _ in rows
    ]


@lru_cache(maxsize=256)
def _call_of(values: tuple[Any, ...]) -> str:
    """Return the call for tasks that share these values.

    The values are part of its text: sending them as parameters each time takes longer than
    everything else that the client does.
    """
    from psycopg.sql import Literal  # Imported here, because SQLite works without psycopg.

    literals = [Literal(value).as_string(None).replace("%", "%%") for value in values]
    return INSERT_PLAIN.format(arguments=", ".join(["%s"] * len(OWN_COLUMNS) + literals))


def utc(moment: datetime) -> datetime:
    """Return the moment in UTC."""
    return moment.astimezone(UTC)
