"""Renewing leases, promoting, ending overdue tasks, pruning, and rollups on SQLite."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.rows import RECOUNTED, Ended, Held, Renewal, RollupRow, StopRequest
from taskqueue.engine.sqlite.values import ago, clock, dashed, loaded, retention_of, rows, stored
from taskqueue.engine.statement import Moment, Statement, change, fetch

# Only reads: the write lock is taken only if there is something to promote.
NEXT_DUE = """
SELECT (SELECT min(run_after) FROM taskqueue_task WHERE status IN ('retrying', 'scheduled'))
"""

PROMOTE = """
UPDATE taskqueue_task
SET status = 'ready', ready_at = %s
WHERE id IN (
    SELECT id FROM taskqueue_task
    WHERE status IN ('retrying', 'scheduled') AND run_after <= %s
    ORDER BY run_after
    LIMIT %s
)
"""

PICK_OVERDUE = """
SELECT id, retention, unique_until, holds_unique_key, unique_for, step_id
FROM taskqueue_task
WHERE deadline_at IS NOT NULL AND deadline_at <= %s
    AND status IN ('blocked', 'ready', 'retrying', 'scheduled')
LIMIT %s
"""

PICK_EXPIRED = """
SELECT id, retention, unique_until, holds_unique_key, unique_for, step_id
FROM taskqueue_task
WHERE expires_at IS NOT NULL AND expires_at <= %s AND started_at IS NULL
    AND status IN ('blocked', 'ready', 'retrying', 'scheduled')
LIMIT %s
"""

END = """
UPDATE taskqueue_task
SET status = %s,
    error_class = %s,
    error_message = %s,
    finished_at = %s,
    prune_after = %s,
    holds_unique_key = %s
WHERE id = %s
RETURNING id, queue_name, name, status, step_id
"""
OVERDUE = (
    "failed",
    "taskqueue.exceptions.DeadlineExceeded",
    "The deadline passed before the task ended.",
)
EXPIRED = "cancelled", "", "Not started before it expired."

# Holders of unique keys are kept; their retention is checked again when the key is free.
PICK_OLD = """
SELECT id FROM taskqueue_task
WHERE prune_after IS NOT NULL AND prune_after <= %s
    AND NOT (holds_unique_key AND (unique_until IS NULL OR unique_until > %s))
ORDER BY prune_after
LIMIT %s
"""
DELETE_OLD = (
    "DELETE FROM taskqueue_tasklog WHERE task_id IN (SELECT value FROM json_each(%s))",
    "DELETE FROM taskqueue_resultpart WHERE task_id IN (SELECT value FROM json_each(%s))",
    "DELETE FROM taskqueue_lease WHERE task_id IN (SELECT value FROM json_each(%s))",
    "DELETE FROM taskqueue_task WHERE id IN (SELECT value FROM json_each(%s))",
)


def promote(
    connection: BaseDatabaseWrapper,
    looks: tuple[Statement, ...],
    *,
    left_out: Collection[Statement],
    worker_id: int,
    limit: int,
) -> tuple[Any, ...]:
    moment = clock()
    now = stored(moment)
    columns = (", NULL" if look in left_out else f", ({look.sqlite})" for look in looks)
    statement = NEXT_DUE + "".join(columns)
    parameters = {"worker": worker_id, "now": now}
    promoted = 0
    (row,) = fetch(connection, statement, parameters)
    due_at = loaded(row[0])
    if due_at is not None and due_at <= moment:
        promoted = change(connection, PROMOTE, (now, now, limit))
        (row,) = fetch(connection, statement, parameters)
    seen = zip(looks, row[1:], strict=True)
    values = (_until(v, moment) if isinstance(look, Moment) else v for look, v in seen)
    return promoted, *values


def _until(text: str | None, moment: datetime) -> float | None:
    then = loaded(text)
    return None if then is None else (then - moment).total_seconds()


def end_overdue(connection: BaseDatabaseWrapper, *, limit: int, policy: EndPolicy) -> list[Ended]:
    moment = clock()
    now = stored(moment)
    ended: list[Ended] = []
    with connection.cursor() as cursor:
        for pick, end in (PICK_OVERDUE, OVERDUE), (PICK_EXPIRED, EXPIRED):
            cursor.execute(pick, (now, limit))
            for task_id, *columns in cursor.fetchall():
                retention = retention_of(*columns)
                kept_until = stored(retention.prune_after(moment, policy.kept_for(end[0])))
                cursor.execute(END, (*end, now, kept_until, retention.keeps_key, task_id))
                ended += [Ended(dashed(row[0]), *row[1:]) for row in cursor.fetchall()]
    return ended


def prune(connection: BaseDatabaseWrapper, *, limit: int) -> int:
    now = stored(clock())
    with connection.cursor() as cursor:
        cursor.execute(PICK_OLD, (now, now, limit))
        old = json.dumps([row[0] for row in cursor.fetchall()])
        for statement in DELETE_OLD:
            cursor.execute(statement, (old,))
        return int(cursor.rowcount)


WRITE_ROLLUP = f"""
INSERT INTO taskqueue_rollup (
    id, queue_name, name,
    succeeded, failed, lost, stopped, returned, tasks_succeeded, tasks_failed, tasks_cancelled,
    run_seconds, run_times, wait_seconds, wait_times, slowest_seconds, slowest_task_id,
    resolution, starts_at
)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, 0, %s)
ON CONFLICT (id) DO UPDATE
SET {RECOUNTED}
"""  # noqa: S608  (of constants)

# Two statements under one lock; ids rise.
COUNT_ARRIVALS = """
SELECT queue_name, name, sum(number), count(*), max(id)
FROM (SELECT id, queue_name, name, number FROM taskqueue_arrival ORDER BY id LIMIT %s)
GROUP BY queue_name, name
"""
DELETE_ARRIVALS = "DELETE FROM taskqueue_arrival WHERE id <= %s"


def write_rollups(connection: BaseDatabaseWrapper, rows: Sequence[RollupRow]) -> None:
    now = stored(clock())
    with connection.cursor() as cursor:
        for row in rows:
            slowest = row.slowest_task_id
            own = row._replace(
                id=UUID(row.id).hex, slowest_task_id=None if slowest is None else UUID(slowest).hex
            )
            cursor.execute(WRITE_ROLLUP, (*own, now))


def take_arrivals(
    connection: BaseDatabaseWrapper, *, limit: int
) -> list[tuple[str, str, int, int]]:
    counts = fetch(connection, COUNT_ARRIVALS, (limit,))
    if counts:
        change(connection, DELETE_ARRIVALS, (max(row[4] for row in counts),))
    return [(row[0], row[1], row[2], row[3]) for row in counts]


# The column itself is returned, not whether it is NULL: behind UPDATE ... FROM, SQLite 3.40 answers
# `IS NOT NULL` with 1 for a NULL, and every body that was pinged would be told to stop.
RENEW = """
UPDATE taskqueue_lease
SET expires_at = json_extract(ping.value, '$[1]'),
    started_at = COALESCE(taskqueue_lease.started_at, json_extract(ping.value, '$[2]'))
FROM json_each(%s) AS ping
WHERE taskqueue_lease.id = json_extract(ping.value, '$[0]') AND taskqueue_lease.status = 'running'
RETURNING id, stop_requested_at, stop_requested_by, stop_reason
"""

STATUSES = """
SELECT lease.id, lease.status
FROM json_each(%s) AS missing
CROSS JOIN taskqueue_lease AS lease ON lease.id = missing.value
"""

SEE_STOPS = """
UPDATE taskqueue_lease
SET stop_seen_at = %s
FROM json_each(%s) AS seen
WHERE taskqueue_lease.id = seen.value
    AND taskqueue_lease.status = 'running'
    AND taskqueue_lease.stop_seen_at IS NULL
"""


def renew(connection: BaseDatabaseWrapper, held: Sequence[Held]) -> Renewal:
    moment = clock()
    packed = rows(
        (
            lease.lease_id,
            stored(moment + timedelta(seconds=lease.seconds)),
            ago(moment, lease.started),
        )
        for lease in held
    )
    with connection.cursor() as cursor:
        cursor.execute(RENEW, (packed,))
        leases = cursor.fetchall()
        renewed = frozenset(row[0] for row in leases)
        missing = [lease.lease_id for lease in held if lease.lease_id not in renewed]
        statuses: dict[int, str] = {}
        if missing:
            cursor.execute(STATUSES, (json.dumps(missing),))
            statuses = dict(cursor.fetchall())
    return Renewal(
        renewed=renewed,
        ended=frozenset(id for id in missing if statuses.get(id) != "running"),
        succeeded=frozenset(id for id in missing if statuses.get(id) == "succeeded"),
        stops=tuple(StopRequest(row[0], row[2], row[3]) for row in leases if row[1] is not None),
    )


def see_stops(connection: BaseDatabaseWrapper, lease_ids: Sequence[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(SEE_STOPS, (stored(clock()), json.dumps(list(lease_ids))))
