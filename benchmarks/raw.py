"""The raw statements with which the engine is compared, derived so that they stay comparable.

`Engine` runs the engine's own claim and record. `Least` does the least that leaves the same rows as
a worker; its claim has the condition and the order of the engine's index. An INSERT has the columns
of the engine's, a COPY is the engine's. All run on a session set up like a worker's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection, models
from django.utils import timezone
from psycopg import sql

from taskqueue.conf import get_settings
from taskqueue.core.uuid7 import uuid7_hex
from taskqueue.definitions import Definition
from taskqueue.engine.connections import open_worker_connection
from taskqueue.engine.making_specs import spec_of
from taskqueue.engine.payloads import Payload
from taskqueue.engine.postgresql import copying
from taskqueue.engine.postgresql.claim import CLAIM
from taskqueue.engine.postgresql.record import RECORD_SUCCESSES
from taskqueue.engine.postgresql.values import numbers, texts
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.sessions import SERIES, own_session
from taskqueue.engine.specs import PLAIN_COLUMNS
from taskqueue.models import Task

CLAIM_INDEX = "taskqueue_task_claim"
BATCH = 100
SILENCE = 10.0
TIMES = ("run_after", "enqueued_at", "ready_at")


def least_claim(batch: int) -> str:
    """Lease that many tasks of the queue `default` for the worker that is the one parameter."""
    index = next(each for each in Task._meta.indexes if each.name == CLAIM_INDEX)
    order = [
        f"{name} {direction}"
        for name, direction in index.fields_orders
        if name not in ("queue_name", "status", "route")
    ]
    return f"""
WITH picked AS MATERIALIZED (
    SELECT id
    FROM taskqueue_task
    WHERE {_condition(index)} AND queue_name = 'default'
    ORDER BY {", ".join(order)}
    LIMIT {batch:d}
    FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE taskqueue_task AS task
    SET status = 'running', attempt = task.attempt + 1
    FROM picked
    WHERE task.id = ANY (ARRAY[picked.id])
    RETURNING
        nextval('taskqueue_lease_id_seq') AS lease_id,
        task.id, task.name, task.attempt, task.args, task.kwargs
), leased AS (
    INSERT INTO taskqueue_lease (
        id, task_id, worker_id, attempt, status, claimed_at, expires_at
    )
    SELECT
        lease_id, id, %s, attempt, 'running', statement_timestamp(),
        statement_timestamp() + interval '30 seconds'
    FROM claimed
)
SELECT lease_id, id::text, name, attempt, args::text, kwargs::text
FROM claimed
"""


def _condition(index: models.Index) -> str:
    # Django has no public way to the words of an index's condition.
    find: Any = index._get_condition_sql  # type: ignore[attr-defined]
    connection.ensure_connection()
    return str(find(Task, connection.schema_editor())).replace('"taskqueue_task".', "")


LEAST_RECORD = """
WITH ended AS (
    UPDATE taskqueue_lease
    SET status = 'succeeded', started_at = clock_timestamp(), finished_at = clock_timestamp()
    WHERE id = ANY (%s) AND finished_at IS NULL
    RETURNING task_id
)
UPDATE taskqueue_task AS task
SET status = 'succeeded',
    return_value = NULL,
    started_at = clock_timestamp(),
    finished_at = clock_timestamp(),
    prune_after = clock_timestamp() + interval '7 days'
FROM ended
WHERE task.id = ANY (ARRAY[ended.task_id]) AND task.status = 'running'
"""


@contextmanager
def session() -> Iterator[psycopg.Cursor[Any]]:
    """A cursor of psycopg's own on a session that is opened and set up as a worker's."""
    worker = open_worker_connection(silence=SILENCE)
    own_session(worker)
    try:
        yield psycopg.Cursor(worker.connection)
    finally:
        worker.close()


class Engine:
    """The engine's own claim and record, without what a worker does around them."""

    def __init__(self, cursor: psycopg.Cursor[Any], worker: str, batch: int = BATCH) -> None:
        self._cursor = cursor
        settings = get_settings()
        self._kept_for = EndPolicy.of(settings).keep_succeeded
        self._claim = {
            "queues": ["default"], "sizes": [batch], "floors": [None], "unknown": [],
            "worker": worker, "lease_duration": settings.LEASE_DURATION, "series": SERIES,
        }  # fmt: skip

    def claim(self) -> list[int]:
        """The ids of the leases of one batch."""
        self._cursor.execute(CLAIM, self._claim, prepare=True)
        return [row[0] for row in self._cursor.fetchall()]

    def record(self, leases: Sequence[int]) -> None:
        """Each as a success, and how many were recorded is read as the engine reads it."""
        parameters = {
            "lease_id": numbers(leases),
            "return_value": texts([None] * len(leases)),
            "started": numbers([1000] * len(leases)),
            "ended": numbers([1000] * len(leases)),
            "kept_for": self._kept_for,
            "passing": "{}",
            "series": SERIES,
        }
        self._cursor.execute(RECORD_SUCCESSES, parameters, prepare=True)
        assert len(self._cursor.fetchall()) == len(leases)


class Least:
    """The least statements that leave the rows which a worker leaves."""

    def __init__(self, cursor: psycopg.Cursor[Any], worker: str, batch: int = BATCH) -> None:
        self._cursor, self._worker, self._claim = cursor, worker, least_claim(batch)

    def claim(self) -> list[int]:
        """The ids of the leases of one batch."""
        self._cursor.execute(self._claim, (self._worker,), prepare=True)
        return [row[0] for row in self._cursor.fetchall()]

    def record(self, leases: Sequence[int]) -> None:
        """Each as a success."""
        self._cursor.execute(LEAST_RECORD, (list(leases),), prepare=True)


class Row:
    """A task as an enqueue has left it: the raw ways insert the same one again."""

    def __init__(self, cursor: psycopg.Cursor[Any], task_id: str) -> None:
        texts = sql.SQL(", ").join(
            sql.SQL("{}::text").format(sql.Identifier(c)) for c in PLAIN_COLUMNS
        )
        found = cursor.execute(
            sql.SQL("SELECT {} FROM taskqueue_task WHERE id = %s::uuid").format(texts), (task_id,)
        ).fetchone()
        assert found is not None, f"There is no task {task_id}."
        row: dict[str, str | None] = dict(zip(PLAIN_COLUMNS, found, strict=True))
        # What is NULL need not be sent.
        self._shared = {
            name: value
            for name, value in row.items()
            if value is not None and name not in ("id", "args")
        }
        self._names = ", ".join(("id", "args", *self._shared))

    def insert(self) -> str:
        """The INSERT of such a row; its parameters are the id and the arguments."""
        values = {name: sql.Literal(value).as_string() for name, value in self._shared.items()}
        values |= dict.fromkeys(TIMES, "statement_timestamp()")
        return (
            f"INSERT INTO taskqueue_task ({self._names})"
            f" VALUES (%s, %s, {', '.join(values.values())})"
        )

    def procedure(self) -> str:
        """A procedure of this session that runs the INSERT."""
        body = self.insert().replace("%s, %s", "id, args")
        return (
            "CREATE PROCEDURE pg_temp.raw_insert(id uuid, args jsonb) LANGUAGE plpgsql"
            f" AS $body$ BEGIN {body}; END $body$"
        )


def rows_of_copy(definition: Definition[..., Any], count: int) -> bytes:
    """New tasks of a definition, ready to be sent by the engine's own `COPY` of many."""
    tail = copying.binary(spec_of(definition).columns_at(timezone.now()), "utf-8")
    payloads = [Payload(uuid7_hex(), f"[{number}]", "{}", None) for number in range(count)]
    return copying.COPY_BEGINS + copying.plain_rows(payloads, tail) + copying.COPY_ENDS
