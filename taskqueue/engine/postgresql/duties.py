"""Renewing leases, promoting, ending overdue tasks, pruning, and rollups on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.retention import KEEPS_KEY, PRUNE_AFTER, EndPolicy
from taskqueue.engine.rows import RECOUNTED, Ended, Held, Renewal, RollupRow, StopRequest
from taskqueue.engine.sessions import KEEPS_PLAN, kept_plan, owns_session
from taskqueue.engine.statement import Moment, Statement, change, fetch

# Locks: due tasks by run_after, skipping locked ones. With `statement_timestamp()` the index can be
# used; the statement is a transaction by itself.
PROMOTE = """
WITH due AS MATERIALIZED (
    SELECT id
    FROM taskqueue_task
    WHERE status IN ('retrying', 'scheduled') AND run_after <= statement_timestamp()
    ORDER BY run_after
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), promoted AS (
    UPDATE taskqueue_task AS task
    SET status = 'ready', ready_at = clock_timestamp()
    FROM due
    WHERE task.id = ANY (ARRAY[due.id])
    RETURNING 1
)
SELECT (SELECT count(*) FROM promoted)
"""

# Locks: overdue tasks, then expired ones, in the order of their indexes, skipping locked ones.
# Running tasks are left to their workers.
END_OVERDUE = f"""
WITH overdue AS MATERIALIZED (
    SELECT id
    FROM taskqueue_task
    WHERE deadline_at IS NOT NULL
        AND deadline_at <= statement_timestamp()
        AND status IN ('blocked', 'ready', 'retrying', 'scheduled')
    ORDER BY deadline_at
    LIMIT %s
    FOR UPDATE SKIP LOCKED
), expired AS MATERIALIZED (
    SELECT id
    FROM taskqueue_task
    WHERE expires_at IS NOT NULL
        AND expires_at <= statement_timestamp()
        AND started_at IS NULL
        AND status IN ('blocked', 'ready', 'retrying', 'scheduled')
    ORDER BY expires_at
    LIMIT %s
    FOR UPDATE SKIP LOCKED
), ended AS (
    SELECT
        id, 'failed' AS status, 'taskqueue.exceptions.DeadlineExceeded' AS error_class,
        'The deadline passed before the task ended.' AS error_message, %s::interval AS kept
    FROM overdue
    UNION ALL
    SELECT id, 'cancelled', '', 'Not started before it expired.', %s::interval
    FROM expired
    WHERE id NOT IN (SELECT id FROM overdue)
)
UPDATE taskqueue_task AS task
SET status = ended.status,
    error_class = ended.error_class,
    error_message = ended.error_message,
    finished_at = statement_timestamp(),
    prune_after = {PRUNE_AFTER.format(finished_at="statement_timestamp()", kept_for="ended.kept")},
    holds_unique_key = {KEEPS_KEY}
FROM ended
WHERE task.id = ANY (ARRAY[ended.id])
RETURNING task.id::text, task.queue_name, task.name, task.status, task.step_id
"""  # noqa: S608  (of constants)

# Locks: finished tasks by the end of their retention, skipping locked ones.
PRUNE = """
WITH old AS MATERIALIZED (
    SELECT id
    FROM taskqueue_task
    WHERE prune_after IS NOT NULL AND prune_after <= statement_timestamp()
    ORDER BY prune_after
    LIMIT %s
    FOR UPDATE SKIP LOCKED
), lines AS (
    DELETE FROM taskqueue_tasklog AS line USING old WHERE line.task_id = old.id
), parts AS (
    DELETE FROM taskqueue_resultpart AS part USING old WHERE part.task_id = old.id
), leases AS (
    DELETE FROM taskqueue_lease AS lease USING old WHERE lease.task_id = old.id
)
DELETE FROM taskqueue_task AS task USING old WHERE task.id = old.id
"""


def promote(
    connection: BaseDatabaseWrapper,
    looks: tuple[Statement, ...],
    *,
    left_out: Collection[Statement],
    worker_id: int,
    limit: int,
) -> tuple[Any, ...]:
    """Make due tasks ready.

    Return how many, then the result of each look; for moments, the seconds left. Looks that are
    left out are null. On a session of its own the server keeps one plan for all looks.
    """
    parameters: dict[str, Any] = {"limit": limit, "worker": worker_id}
    if not owns_session(connection):
        columns = (", NULL" if look in left_out else f", {_value(look)}" for look in looks)
        (row,) = fetch(connection, PROMOTE + "".join(columns), parameters)
        return row
    asked = "".join("01"[look not in left_out] for look in looks)
    with kept_plan(connection) as series:
        parameters |= {"asked": asked, "series": series}
        (row,) = fetch(connection, PROMOTE + _asked_columns(looks), parameters)
    return row


@cache
def _value(look: Statement) -> str:
    if isinstance(look, Moment):
        return f"EXTRACT(epoch FROM ({look.postgresql}) - clock_timestamp())::float8"
    return f"({look.postgresql})"


@cache
def _asked_columns(looks: tuple[Statement, ...]) -> str:
    """Return columns with the results of those looks for which `asked` has a 1 in their place."""
    columns = (
        f", CASE WHEN substr(%(asked)s::text, {place}, 1) = '1' THEN {_value(look)} END"
        for place, look in enumerate(looks, 1)
    )
    return "".join(columns) + f"\nWHERE {KEEPS_PLAN}"


def end_overdue(connection: BaseDatabaseWrapper, *, limit: int, policy: EndPolicy) -> list[Ended]:
    """Fail tasks past their deadline and cancel expired ones, if nobody runs them."""
    parameters = limit, limit, policy.keep_failed, policy.keep_cancelled
    rows = fetch(connection, END_OVERDUE, parameters)
    return [Ended(*row) for row in rows]


def prune(connection: BaseDatabaseWrapper, *, limit: int) -> int:
    """Delete finished tasks whose retention is over, with their leases, log lines and parts."""
    return change(connection, PRUNE, (limit,))


# Locks: the rows of this process, which no other process writes.
WRITE_ROLLUPS = f"""
INSERT INTO taskqueue_rollup (
    id, resolution, starts_at, queue_name, name,
    succeeded, failed, lost, stopped, returned, tasks_succeeded, tasks_failed, tasks_cancelled,
    run_seconds, run_times, wait_seconds, wait_times, slowest_seconds, slowest_task_id
)
SELECT
    part.id, 0, clock_timestamp(), part.queue_name, part.name,
    succeeded, failed, lost, stopped, returned, tasks_succeeded, tasks_failed, tasks_cancelled,
    run_seconds, run_times::jsonb, wait_seconds, wait_times::jsonb, slowest_seconds,
    slowest_task_id
FROM jsonb_to_recordset(%(rollups)s::jsonb) AS part (
    id uuid, queue_name text, name text, succeeded bigint, failed bigint, lost bigint,
    stopped bigint, returned bigint, tasks_succeeded bigint, tasks_failed bigint,
    tasks_cancelled bigint, run_seconds float8, run_times text, wait_seconds float8,
    wait_times text, slowest_seconds float8, slowest_task_id uuid
)
ON CONFLICT (id) DO UPDATE
SET {RECOUNTED}
"""  # noqa: S608  (of constants)

# Locks: any rows up to the limit, skipping locked ones; found by physical place, as there is no
# index.
TAKE_ARRIVALS = """
WITH taken AS (
    DELETE FROM taskqueue_arrival
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM taskqueue_arrival LIMIT %s FOR UPDATE SKIP LOCKED
    ))
    RETURNING queue_name, name, number
)
SELECT queue_name, name, sum(number)::bigint, count(*) FROM taken GROUP BY queue_name, name
"""


def write_rollups(connection: BaseDatabaseWrapper, rows: Sequence[RollupRow]) -> None:
    """Insert rows, or overwrite the figures of existing ones."""
    with kept_plan(connection):
        change(connection, WRITE_ROLLUPS, {"rollups": rollups_text(rows)})


def rollups_text(rows: Sequence[RollupRow]) -> str:
    """Return rows as one text: an array for each column costs psycopg a millisecond."""
    return json.dumps([row._asdict() for row in rows])


def take_arrivals(
    connection: BaseDatabaseWrapper, *, limit: int
) -> list[tuple[str, str, int, int]]:
    """Delete up to `limit` arrivals. Return queues, names, and the numbers of tasks and of rows."""
    return [(row[0], row[1], row[2], row[3]) for row in fetch(connection, TAKE_ARRIVALS, (limit,))]


# Each lease is found by LATERAL, as in `record`.
#
# Locks: leases by id, skipping those that are just being recorded.
RENEW = """
WITH held AS MATERIALIZED (
    SELECT lease.id, ping.seconds, ping.started
    FROM (
        SELECT *
        FROM unnest(%s::bigint[], %s::float8[], %s::float8[]) AS ping (lease_id, seconds, started)
        ORDER BY lease_id
    ) AS ping
    JOIN LATERAL (
        SELECT id
        FROM taskqueue_lease
        WHERE id = ping.lease_id AND finished_at IS NULL
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS lease ON lease.id = ping.lease_id
)
UPDATE taskqueue_lease AS lease
SET expires_at = clock_timestamp() + held.seconds * interval '1 second',
    started_at = COALESCE(
        lease.started_at, clock_timestamp() - held.started * interval '1 second'
    )
FROM held
WHERE lease.id = ANY (ARRAY[held.id])
RETURNING
    lease.id, lease.stop_requested_at IS NOT NULL, lease.stop_requested_by, lease.stop_reason
"""

STATUSES = """
SELECT lease.id, lease.status
FROM unnest(%s::bigint[]) AS missing (lease_id)
CROSS JOIN LATERAL (
    SELECT id, status FROM taskqueue_lease WHERE id = missing.lease_id LIMIT 1
) AS lease
"""

# Locks: leases by id.
SEE_STOPS = """
WITH held AS MATERIALIZED (
    SELECT lease.id
    FROM (SELECT * FROM unnest(%s::bigint[]) AS seen (lease_id) ORDER BY lease_id) AS seen
    JOIN LATERAL (
        SELECT id
        FROM taskqueue_lease
        WHERE id = seen.lease_id AND finished_at IS NULL AND stop_seen_at IS NULL
        LIMIT 1
        FOR UPDATE
    ) AS lease ON lease.id = seen.lease_id
)
UPDATE taskqueue_lease AS lease
SET stop_seen_at = clock_timestamp()
FROM held
WHERE lease.id = ANY (ARRAY[held.id])
"""


def renew(connection: BaseDatabaseWrapper, held: Sequence[Held]) -> Renewal:
    """Extend leases, and return the requests about them."""
    rows = fetch(connection, RENEW, tuple(map(list, zip(*held, strict=True))))
    renewed = frozenset(row[0] for row in rows)
    stops = tuple(StopRequest(row[0], row[2], row[3]) for row in rows if row[1])
    missing = [lease.lease_id for lease in held if lease.lease_id not in renewed]
    statuses: dict[int, str] = {}
    if missing:
        statuses = {row[0]: row[1] for row in fetch(connection, STATUSES, (missing,))}
    return Renewal(
        renewed=renewed,
        ended=frozenset(id for id in missing if statuses.get(id) != "running"),
        succeeded=frozenset(id for id in missing if statuses.get(id) == "succeeded"),
        stops=stops,
    )


def see_stops(connection: BaseDatabaseWrapper, lease_ids: Sequence[int]) -> None:
    """Acknowledge stop requests: from now on these attempts cannot succeed."""
    change(connection, SEE_STOPS, (list(lease_ids),))
