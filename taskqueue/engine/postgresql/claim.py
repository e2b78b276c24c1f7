"""Claiming ordinary tasks on PostgreSQL: those that any worker may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.event_kinds import EventKind
from taskqueue.engine.postgresql.events import PUBLISH_STARTED, published_by_statement
from taskqueue.engine.postgresql.values import numbers, texts
from taskqueue.engine.rows import NO_FLOORS, Claimed
from taskqueue.engine.sessions import KEEPS_PLAN, kept_plan
from taskqueue.engine.statement import fetch

# The definitions that are paused, and '' if everything is. They are read once, in the statement's
# own snapshot, from a table that holds nothing else.
PAUSES = """ARRAY(
    SELECT name::text
    FROM taskqueue_pause
    WHERE paused_until IS NULL OR paused_until > clock_timestamp()
)"""

# The fields of `Claimed` between the id of the lease and the last field.
CLAIMED = """
    task.id::text, task.name, task.attempt, task.args::text, task.kwargs::text,
    CASE WHEN task.options = '{{}}' THEN '' ELSE task.options::text END,
    CASE WHEN task.metadata = '{{}}' THEN '' ELSE task.metadata::text END,
    {failures}, task.max_attempts, task.crashes,
    EXTRACT(epoch FROM task.lease_duration)::float8,
    EXTRACT(epoch FROM task.deadline_at - clock_timestamp())::float8,
    task.queue_name,
    EXTRACT(epoch FROM task.ping_interval)::float8,
    EXTRACT(epoch FROM clock_timestamp() - task.ready_at)::float8"""

# Locks: ready tasks in the order of the queue, skipping locked ones; inserts their leases. The pick
# is materialised, because otherwise PostgreSQL might run it again and take more than the quota. The
# id of a lease consists of the seconds since 2025 and 22 bits of the sequence. A standby that lacks
# the last seconds would otherwise give out ids of its sequence again, and a worker that still holds
# one of those attempts would record it as another task's. The ids stay below 2^53 until 2093. Which
# queues are paused or limited is read once, in the statement's own snapshot. A floor lets
# PostgreSQL skip the dead entries at the head of the index: from version 18 on it skips their
# pages; earlier versions read the pages but none of the rows. The server keeps the plan, like that
# of RECORD_SUCCESSES.
#
# A claim consists of these parts, in this order.
_READY = f"""
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now WHERE {KEEPS_PLAN}
), picked AS MATERIALIZED (
    SELECT task.id, quota.lane
    FROM unnest(%(queues)s::text[], %(sizes)s::int[], %(floors)s::timestamptz[])
        WITH ORDINALITY AS quota (queue_name, size, floor, lane)
    CROSS JOIN LATERAL (
        SELECT id
        FROM taskqueue_task
        WHERE status = 'ready'
            AND route = 0
            AND queue_name = quota.queue_name
            AND run_after >= COALESCE(quota.floor, '-infinity')
"""  # noqa: S608  (of constants)
# For one priority only, so that a floor is a position in the index on every version of PostgreSQL.
_AT_PRIORITY = """\
            AND priority = %(priority)s
"""
_LEASED = f"""\
            AND name <> ALL (%(unknown)s::text[])
            AND name <> ALL ({PAUSES})
            AND (expires_at IS NULL OR started_at IS NOT NULL OR expires_at > clock_timestamp())
            AND (deadline_at IS NULL OR deadline_at > clock_timestamp())
        ORDER BY priority DESC, run_after, id
        LIMIT quota.size
        FOR UPDATE SKIP LOCKED
    ) AS task
    WHERE quota.queue_name <> ALL (ARRAY(
        SELECT name
        FROM taskqueue_queue
        WHERE limiter_id IS NOT NULL OR paused_at IS NOT NULL
            AND (paused_until IS NULL OR paused_until > clock_timestamp())
    ))
        AND '' <> ALL ({PAUSES})
), claimed AS (
    UPDATE taskqueue_task AS task
    SET status = 'running',
        attempt = task.attempt + 1,
        holds_unique_key = task.holds_unique_key AND task.unique_for <> 'started'
    FROM picked
    WHERE task.id = ANY (ARRAY[picked.id])
    RETURNING
        ((EXTRACT(epoch FROM clock_timestamp())::bigint - 1735689600) << 22)
            | (nextval('taskqueue_lease_id_seq') & 4194303) AS lease_id,
        picked.lane, task.*
), leased AS (
    INSERT INTO taskqueue_lease (
        id, task_id, worker_id, attempt, status, claimed_at, expires_at
    )
    SELECT
        lease_id, id, %(worker)s, attempt, 'running', now,
        now + COALESCE(lease_duration, %(lease_duration)s::interval)
    FROM claimed CROSS JOIN clock
)
"""  # noqa: S608  (of constants)
# The claim that also writes the events of the starts.
_EVENTS = f"""\
, published AS ({PUBLISH_STARTED})
"""
_CLAIMED = f"""\
SELECT lease_id, {CLAIMED.format(failures="task.failures")}
FROM claimed AS task
ORDER BY lane, priority DESC, run_after, id
"""  # noqa: S608  (of constants)

CLAIM = _READY + _LEASED + _CLAIMED
CLAIM_WITH_EVENTS = _READY + _LEASED + _EVENTS + _CLAIMED
CLAIM_AT_PRIORITY = _READY + _AT_PRIORITY + _LEASED + _CLAIMED
CLAIM_WITH_EVENTS_AT_PRIORITY = _READY + _AT_PRIORITY + _LEASED + _EVENTS + _CLAIMED

# A loose scan of the claim's index: one probe for each priority of each queue.
EARLIEST_READY = """
SELECT queue.name, earliest.run_after
FROM unnest(%s::text[]) AS queue (name)
CROSS JOIN LATERAL (
    WITH RECURSIVE level AS (
        (
            SELECT priority, run_after
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 0 AND queue_name = queue.name
            ORDER BY priority DESC, run_after
            LIMIT 1
        )
        UNION ALL
        SELECT below.priority, below.run_after
        FROM level
        CROSS JOIN LATERAL (
            SELECT priority, run_after
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 0 AND queue_name = queue.name
                AND priority < level.priority
            ORDER BY priority DESC, run_after
            LIMIT 1
        ) AS below
    )
    SELECT min(run_after) AS run_after FROM level
) AS earliest
WHERE earliest.run_after IS NOT NULL
"""


def claim(
    connection: BaseDatabaseWrapper,
    *,
    worker: str,
    quotas: Sequence[tuple[str, int]],
    unknown: Sequence[str],
    lease_duration: timedelta,
    floors: Mapping[str, datetime] = NO_FLOORS,
    priority: int | None = None,
) -> list[Claimed]:
    """Lease ready tasks up to the quota of each queue, of one priority if that is given.

    A queue's floor excludes tasks that were due before it.
    """
    names, sizes = zip(*quotas, strict=True) if quotas else ((), ())
    starts = [floors.get(queue_name) for queue_name in names]
    parameters: dict[str, Any] = {
        "queues": texts(names),
        "sizes": numbers(sizes),
        "floors": texts([None if start is None else start.isoformat() for start in starts]),
        "unknown": texts(unknown),
        "worker": worker,
        "lease_duration": lease_duration,
    }
    most = sum(sizes)
    with (
        published_by_statement(connection, EventKind.TASK_STARTED, most) as publishes,
        kept_plan(connection) as series,
    ):
        if priority is None:
            statement = CLAIM_WITH_EVENTS if publishes else CLAIM
        else:
            parameters["priority"] = priority
            statement = CLAIM_WITH_EVENTS_AT_PRIORITY if publishes else CLAIM_AT_PRIORITY
        rows = fetch(connection, statement, parameters | {"series": series})
    return [_claimed((*row, False)) for row in rows]


# A named tuple's own methods cost twice as much, and this runs for every attempt.
_claimed: Callable[[tuple[Any, ...]], Claimed] = partial(tuple.__new__, Claimed)


def earliest_ready(
    connection: BaseDatabaseWrapper, queue_names: Sequence[str]
) -> dict[str, datetime]:
    """Return when the earliest ready task of each queue was due: floors that exclude nothing.

    Empty if dead rows do not slow claims down.
    """
    return {row[0]: row[1] for row in fetch(connection, EARLIEST_READY, (list(queue_names),))}
