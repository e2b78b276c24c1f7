"""Inserting tasks on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from struct import Struct, pack
from typing import Any, cast

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import (
    DateTimeField,
    DurationField,
    IntegerField,
    JSONField,
    SmallIntegerField,
)

from taskqueue.core.lazy import LazySequence
from taskqueue.engine.notify import ANYWHERE
from taskqueue.engine.sessions import BEGIN_BULK
from taskqueue.engine.specs import (
    COLUMNS,
    LIMIT_COLUMNS,
    OWN_COLUMNS,
    PLACEMENT_COLUMNS,
    PLAIN_COLUMNS,
    PLAIN_PARAMETERS,
    Enqueued,
    EnqueueSpec,
    Payload,
    payload_columns,
)
from taskqueue.engine.statement import fetch
from taskqueue.models import Task
from taskqueue.models.task import Route

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# A procedure of the migration inserts the row and its arrival, and notifies where a worker sleeps.
INSERT_PLAIN = """
CALL taskqueue_enqueue(
    {arguments}, enqueued_at => statement_timestamp(), microseconds => NULL
)
"""

# The moments of new tasks, by the clock or where many share one.
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
# Locks: the unique keys' index entries, in the order of the rows; waits as the above does.
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

# The caller's transaction may be a long one: what it changes later must be heard by whoever has
# subscribed until then. `set_config` gives back the text, which is not null.
ARRIVED = """
WITH counted AS (
    INSERT INTO taskqueue_arrival (id, queue_name, name, number)
    SELECT 0, %s, %s, %s WHERE set_config('taskqueue.events', %s, true) IS NOT NULL
)
SELECT pg_notify('taskqueue', %s) FROM taskqueue_worker WHERE is_idle LIMIT 1
"""

SHARED_COLUMNS = tuple(
    column for column in (*PLAIN_COLUMNS, *LIMIT_COLUMNS) if column not in OWN_COLUMNS
)
# Of a task of a partition, behind its own columns.
PLACED_COLUMNS = ("route", *PLACEMENT_COLUMNS)
# Binary: the server reads a row of text a fifth slower.
COPY = f"""
COPY taskqueue_task ({", ".join((*OWN_COLUMNS, *SHARED_COLUMNS))}) FROM STDIN (FORMAT binary)
"""
COPY_PLACED = f"""
COPY taskqueue_task ({", ".join((*OWN_COLUMNS, *PLACED_COLUMNS, *SHARED_COLUMNS))})
FROM STDIN (FORMAT binary)
"""
COPY_BEGINS = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
COPY_ENDS = b"\xff\xff"
NULL = b"\xff\xff\xff\xff"
JSONB_VERSION = 1
# A number of columns, a UUID, and how long the first JSON text is, with its version.
HEAD = Struct("!hi16siB")
LENGTH = Struct("!iB")
# A route, and the partition's UUID.
PLACE = Struct("!ihi16s")
# What binary timestamps count from.
YEAR_2000 = datetime(2000, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
ROWS_A_BLOCK = 500


def now(connection: BaseDatabaseWrapper) -> datetime:
    """The moment by the database's clock."""
    return cast(datetime, fetch(connection, "SELECT clock_timestamp()")[0][0])


def insert(connection: BaseDatabaseWrapper, spec: EnqueueSpec, payload: Payload) -> Enqueued | None:
    """Insert one task; None if another holds its unique key."""
    id, args, kwargs, unique_key, placement = payload
    if spec.is_plain and unique_key is None and placement is None:
        rows = fetch(connection, _call_of(spec.plain_values), (id, args, kwargs))
        # Microseconds: Django's loader of datetimes costs as much as a tenth of the statement.
        at = EPOCH + timedelta(microseconds=rows[0][0])
        return Enqueued(id, "ready", at, at)
    rows = fetch(connection, INSERT, spec.parameters | payload_columns(payload))
    if not rows:
        return None
    status, enqueued_at, ready_at, _ = rows[0]
    return Enqueued(payload.id, status, _utc(enqueued_at), ready_at and _utc(ready_at))


def insert_keyed(
    connection: BaseDatabaseWrapper, spec: EnqueueSpec, payloads: Sequence[Payload]
) -> list[Enqueued]:
    """Insert tasks with unique keys that nobody holds, in this order; those that were inserted."""
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
        Enqueued(id.hex, status, _utc(enqueued_at), ready_at and _utc(ready_at))
        for id, status, enqueued_at, ready_at, _ in rows
    ]


@lru_cache(maxsize=256)
def _call_of(values: tuple[Any, ...]) -> str:
    """The call for tasks that share these values.

    They stand in its text: to send them as parameters each time takes longer than all else that the
    client does.
    """
    from psycopg.sql import Literal  # SQLite does without it.

    literals = [Literal(value).as_string(None).replace("%", "%%") for value in values]
    named = zip(PLAIN_PARAMETERS, ["%s"] * len(OWN_COLUMNS) + literals, strict=True)
    return INSERT_PLAIN.format(arguments=", ".join(f"{name} => {value}" for name, value in named))


def insert_many(
    connection: BaseDatabaseWrapper, spec: EnqueueSpec, payloads: Sequence[Payload]
) -> Sequence[Enqueued]:
    """Insert tasks without unique keys.

    By COPY: twice as fast as an INSERT from arrays.
    """
    ((moment, wanted, _),) = fetch(connection, BEGIN_BULK)
    shared = spec.columns_at(_utc(spec.at or moment))
    is_placed = any(payload.placement for payload in payloads)
    statement, rows_of = (COPY_PLACED, _placed_rows) if is_placed else (COPY, plain_rows)
    with connection.cursor() as cursor:
        encoding = cast(Any, cursor).connection.info.encoding
        tail = binary(shared, encoding)
        # Django's wrapper hands unknown names to psycopg's cursor, and does not wrap its errors.
        with connection.wrap_database_errors, cast(Any, cursor).copy(statement) as copy:
            copy.write(COPY_BEGINS)
            for start in range(0, len(payloads), ROWS_A_BLOCK):
                copy.write(rows_of(payloads[start : start + ROWS_A_BLOCK], tail))
            copy.write(COPY_ENDS)
        is_one_queue = shared["status"] == "ready" and not is_placed
        announced = spec.queue_name if is_one_queue else ANYWHERE
        counted = (spec.queue_name, spec.name, len(payloads))
        cursor.execute(ARRIVED, (*counted, wanted or "", announced))
    times = shared["status"], shared["enqueued_at"], shared["ready_at"]
    return LazySequence(len(payloads), lambda place: Enqueued(payloads[place].id, *times))


def plain_rows(payloads: Sequence[Payload], tail: bytes) -> bytes:
    """Rows for a binary COPY; they differ in their payloads alone, whose JSON text is ASCII."""
    count = len(OWN_COLUMNS) + len(SHARED_COLUMNS)
    parts: list[bytes] = []
    latest, rest = "", b""
    for id, args, kwargs, _, _ in payloads:
        if kwargs != latest:
            # Most have none, or the same as the one before.
            latest = kwargs
            rest = LENGTH.pack(len(kwargs) + 1, JSONB_VERSION) + kwargs.encode("ascii") + tail
        parts += (
            HEAD.pack(count, 16, bytes.fromhex(id), len(args) + 1, JSONB_VERSION),
            args.encode("ascii"),
            rest,
        )
    return b"".join(parts)


def _placed_rows(payloads: Sequence[Payload], tail: bytes) -> bytes:
    """The same for tasks that are limited, and those of the same definition that are not."""
    count = len(OWN_COLUMNS) + len(PLACED_COLUMNS) + len(SHARED_COLUMNS)
    parts: list[bytes] = []
    for id, args, kwargs, _, placement in payloads:
        parts += (
            HEAD.pack(count, 16, bytes.fromhex(id), len(args) + 1, JSONB_VERSION),
            args.encode("ascii"),
            LENGTH.pack(len(kwargs) + 1, JSONB_VERSION),
            kwargs.encode("ascii"),
        )
        if placement is None:
            parts += (pack("!ih", 2, Route.ORDINARY), NULL, NULL, tail)
            continue
        limits = placement.limits.encode("ascii")
        parts += (
            PLACE.pack(2, Route.PARTITION, 16, bytes.fromhex(placement.partition)),
            LENGTH.pack(len(limits) + 1, JSONB_VERSION),
            limits,
            tail,
        )
    return b"".join(parts)


def binary(shared: Mapping[str, Any], encoding: str) -> bytes:
    """The values of `SHARED_COLUMNS` as a binary COPY reads them."""
    return b"".join(_binary(column, shared[column], encoding) for column in SHARED_COLUMNS)


def _binary(column: str, value: Any, encoding: str) -> bytes:
    if value is None:
        return NULL
    kind = Task._meta.get_field(column)
    if isinstance(kind, DateTimeField):
        packed = pack("!q", (value - YEAR_2000) // MICROSECOND)
    elif isinstance(kind, DurationField):
        microseconds = timedelta(seconds=value.seconds, microseconds=value.microseconds)
        packed = pack("!qii", microseconds // MICROSECOND, value.days, 0)
    elif isinstance(kind, IntegerField):
        packed = pack("!h" if isinstance(kind, SmallIntegerField) else "!i", value)
    else:
        version = bytes([JSONB_VERSION]) if isinstance(kind, JSONField) else b""
        packed = version + value.encode(encoding)
    return pack("!i", len(packed)) + packed


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)
