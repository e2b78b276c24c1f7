"""Inserting tasks on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.notify import ANYWHERE
from taskqueue.engine.specs import (
    COLUMNS,
    LIMIT_COLUMNS,
    PLAIN_COLUMNS,
    Enqueued,
    EnqueueSpec,
    Payload,
    payload_columns,
)
from taskqueue.engine.statement import fetch

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# The NOTIFY rides in the INSERT's own statement, and only where a worker sleeps: NOTIFY takes a
# lock at commit that all databases of the server share. So does the arrival: counting costs an
# enqueue 3 to 5 % there, and more where the table has a key.
_NOW = "statement_timestamp()"
_PLAIN_VALUES = {column: f"%({column})s" for column in PLAIN_COLUMNS} | {
    "status": "'ready'", "run_after": _NOW, "enqueued_at": _NOW, "ready_at": _NOW,
}  # fmt: skip
INSERT_PLAIN = f"""
WITH counted AS (
    INSERT INTO taskqueue_arrival (id, queue_name, name, number)
    VALUES (0, %(queue_name)s, %(name)s, 1)
)
INSERT INTO taskqueue_task ({", ".join(_PLAIN_VALUES)})
VALUES ({", ".join(_PLAIN_VALUES.values())})
RETURNING
    (EXTRACT(epoch FROM enqueued_at) * 1000000)::bigint,
    (SELECT pg_notify('taskqueue', %(queue_name)s) FROM taskqueue_worker WHERE is_idle LIMIT 1)
"""  # noqa: S608  (the columns are constants)

# Locks: the unique key's index entry; waits for a transaction that is inserting the same key.
_VALUES = {column: f"%({column})s" for column in COLUMNS} | {
    "status": "CASE WHEN run_after > now THEN 'scheduled' ELSE 'ready' END",
    "run_after": "run_after",
    "enqueued_at": "now",
    "ready_at": "CASE WHEN run_after > now THEN NULL ELSE now END",
    "deadline_at": "deadline_at",
    "expires_at": "expires_at",
    "unique_until": "unique_until",
}
INSERT = f"""
WITH clock AS MATERIALIZED (
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
), task AS (
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

ARRIVED = """
WITH counted AS (
    INSERT INTO taskqueue_arrival (id, queue_name, name, number) VALUES (0, %s, %s, %s)
)
SELECT pg_notify('taskqueue', %s) FROM taskqueue_worker WHERE is_idle LIMIT 1
"""

OWN_COLUMNS = ("id", "args", "kwargs")
SHARED_COLUMNS = tuple(
    column for column in (*PLAIN_COLUMNS, *LIMIT_COLUMNS) if column not in OWN_COLUMNS
)
COPY = f"COPY taskqueue_task ({', '.join((*OWN_COLUMNS, *SHARED_COLUMNS))}) FROM STDIN"
ROWS_A_BLOCK = 500


def now(connection: BaseDatabaseWrapper) -> datetime:
    """The moment by the database's clock."""
    return cast(datetime, fetch(connection, "SELECT clock_timestamp()")[0][0])


def insert(connection: BaseDatabaseWrapper, spec: EnqueueSpec, payload: Payload) -> Enqueued | None:
    """Insert one task; None if another holds its unique key."""
    parameters = spec.parameters | payload_columns(payload)
    if spec.is_plain and payload.unique_key is None:
        rows = fetch(connection, INSERT_PLAIN, parameters)
        # Microseconds: Django's loader of datetimes costs as much as a tenth of the statement.
        at = EPOCH + timedelta(microseconds=rows[0][0])
        return Enqueued(payload.id, "ready", at, at)
    rows = fetch(connection, INSERT, parameters)
    if not rows:
        return None
    status, enqueued_at, ready_at, _ = rows[0]
    return Enqueued(payload.id, status, _utc(enqueued_at), ready_at and _utc(ready_at))


def insert_many(
    connection: BaseDatabaseWrapper, spec: EnqueueSpec, payloads: Sequence[Payload]
) -> list[Enqueued]:
    """Insert tasks without unique keys.

    By COPY: twice as fast as an INSERT from arrays.
    """
    shared = spec.columns_at(_utc(spec.at or now(connection)))
    tail = "".join(f"\t{_copy_text(shared[column])}" for column in SHARED_COLUMNS) + "\n"
    with connection.cursor() as cursor:
        # Django's wrapper hands unknown names to psycopg's cursor, and does not wrap its errors.
        with connection.wrap_database_errors, cast(Any, cursor).copy(COPY) as copy:
            for block in _blocks(payloads, tail):
                copy.write(block)
        announced = spec.queue_name if shared["status"] == "ready" else ANYWHERE
        cursor.execute(ARRIVED, (spec.queue_name, spec.name, len(payloads), announced))
    times = shared["status"], shared["enqueued_at"], shared["ready_at"]
    return [Enqueued(payload.id, *times) for payload in payloads]


def _blocks(payloads: Sequence[Payload], tail: str) -> Iterator[str]:
    for start in range(0, len(payloads), ROWS_A_BLOCK):
        yield "".join(
            [
                f"{id}\t{_escaped(args)}\t{_escaped(kwargs)}{tail}"
                for id, args, kwargs, _ in payloads[start : start + ROWS_A_BLOCK]
            ]
        )


def _copy_text(value: object) -> str:
    if value is None:
        return "\\N"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"
    return _escaped(str(value))


def _escaped(text: str) -> str:
    """Text as COPY reads it; JSON text holds no tab or line break of its own."""
    return text.replace("\\", "\\\\") if "\\" in text else text


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)
