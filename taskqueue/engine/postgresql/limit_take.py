"""Taking tasks under limits on PostgreSQL, and writing the new state of partitions and limiters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.limit_rows import Counted, PartitionRow, Taking
from taskqueue.engine.postgresql.claim import CLAIMED
from taskqueue.engine.postgresql.values import numbers, texts, words
from taskqueue.engine.rows import Claimed
from taskqueue.engine.sessions import KEEPS_PLAN, kept_plan
from taskqueue.engine.statement import change, fetch

# Locks: ready tasks in claim order, skipping locked ones. The caller holds partitions and limiters.
# A partition becomes empty if this snapshot sees no other ready task of it: if a task is committed
# later, its note still exists. A task that another session has locked counts as ready.
TAKE = f"""
WITH picked AS MATERIALIZED (
    SELECT task.id, wanted.turn
    FROM unnest(%(tasks)s::uuid[], %(partitions)s::uuid[], %(queues)s::text[])
        WITH ORDINALITY AS wanted (id, partition, queue_name, turn)
    CROSS JOIN LATERAL (
        SELECT id
        FROM taskqueue_task
        WHERE id = wanted.id AND status = 'ready'
            AND partition IS NOT DISTINCT FROM wanted.partition
            AND queue_name = wanted.queue_name
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS task
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
        picked.turn, task.*
), leased AS (
    INSERT INTO taskqueue_lease (
        id, task_id, worker_id, attempt, status, is_limited, claimed_at, expires_at
    )
    SELECT
        lease_id, id, %(worker)s, attempt, 'running', id = ANY (%(limited)s::uuid[]),
        %(now)s::timestamptz,
        %(now)s::timestamptz + COALESCE(lease_duration, %(lease_duration)s::interval)
    FROM claimed
), placed AS (
    INSERT INTO taskqueue_slot (limiter_id, lease_id)
    SELECT place.limiter_id, claimed.lease_id
    FROM unnest(%(limited)s::uuid[], %(limiters)s::uuid[]) AS place (task_id, limiter_id)
    JOIN claimed ON claimed.id = place.task_id
), moved AS (
    UPDATE taskqueue_partition AS partition
    SET state = CASE
            WHEN head.run_after IS NULL AND partition.limits IS NOT NULL
                AND move.state <> 'halted' THEN 'empty'
            ELSE move.state
        END,
        waits_for = CASE
            WHEN head.run_after IS NOT NULL OR partition.limits IS NULL THEN move.waits_for
        END,
        opens_at = CASE
            WHEN head.run_after IS NOT NULL OR partition.limits IS NULL
            THEN to_timestamp(move.opens_at)
        END,
        head_priority = CASE
            WHEN move.rank IS NULL THEN COALESCE(head.priority, partition.head_priority) ELSE 0
        END,
        head_at = COALESCE(head.run_after, partition.head_at),
        rank = COALESCE(
            move.rank, EXTRACT(epoch FROM head.run_after)::float8, partition.rank
        ),
        holder = move.holder,
        changed_at = CASE
            WHEN move.stays AND (head.run_after IS NOT NULL OR partition.limits IS NULL)
            THEN partition.changed_at
            ELSE %(now)s::timestamptz
        END
    FROM unnest(
        %(ids)s::uuid[], %(states)s::text[], %(ranks)s::float8[], %(waits)s::uuid[],
        %(opens)s::float8[], %(holders)s::uuid[], %(news)s::bool[],
        %(stays)s::bool[]
    ) AS move (id, state, rank, waits_for, opens_at, holder, is_news, stays)
    LEFT JOIN LATERAL (
        SELECT priority, run_after
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 2 AND partition = move.id
            AND id <> ALL (ARRAY(SELECT id FROM picked))
        ORDER BY priority DESC, run_after, id
        LIMIT 1
    ) AS head ON true
    WHERE partition.id = ANY (ARRAY[move.id])
        AND (move.is_news OR head.run_after IS NULL AND partition.limits IS NOT NULL)
), started AS (
    UPDATE taskqueue_limiter AS limiter
    SET starts = own.starts::jsonb, used_at = %(now)s::timestamptz
    FROM unnest(%(started)s::uuid[], %(starts)s::text[]) AS own (id, starts)
    WHERE limiter.id = ANY (ARRAY[own.id])
), noted AS (
    INSERT INTO taskqueue_limitnote (subject) SELECT unnest(%(again)s::uuid[])
)
SELECT lease_id, {CLAIMED.format(failures="task.failures")}
FROM claimed AS task
WHERE {KEEPS_PLAN}
ORDER BY turn
"""  # noqa: S608  (of constants)

# Tasks that were allotted but not taken may have left places, which other partitions may wait for.
REOPEN = """
WITH noted AS (
    INSERT INTO taskqueue_limitnote (subject) SELECT unnest(%s::uuid[])
)
UPDATE taskqueue_partition AS partition
SET state = 'open', waits_for = NULL, opens_at = NULL, holder = before.holder
FROM unnest(%s::uuid[], %s::uuid[]) AS before (id, holder)
WHERE partition.id = ANY (ARRAY[before.id]) AND partition.state <> 'empty'
"""


def take_limited(
    connection: BaseDatabaseWrapper,
    taking: Taking,
    counted: Counted,
    *,
    worker: str,
    lease_duration: timedelta,
) -> list[Claimed]:
    """Lease the tasks that are still available, and write partitions and limiters."""
    places = [(id, limiter) for id, limiters in taking.tasks for limiter in limiters]
    moves = taking.moves
    parameters = {
        "tasks": words([id for id, _ in taking.tasks]),
        "partitions": words([partition for partition, _ in taking.found_in]),
        "queues": texts([queue_name for _, queue_name in taking.found_in]),
        "limited": words([id for id, _ in places]),
        "limiters": words([limiter for _, limiter in places]),
        "ids": words([move.id for move in moves]),
        "states": words([move.state for move in moves]),
        "ranks": numbers([move.rank for move in moves]),
        "waits": words([move.waits_for for move in moves]),
        "opens": numbers([move.opens_at for move in moves]),
        "holders": words([move.holder for move in moves]),
        "news": numbers([move.is_news for move in moves]),
        "stays": numbers([move.stays for move in moves]),
        "started": words(list(taking.starts)),
        "starts": texts(list(map(json.dumps, taking.starts.values()))),
        "again": words(taking.again),
        "worker": worker,
        "now": counted.now,
        "lease_duration": lease_duration,
    }
    with kept_plan(connection) as series:
        rows = fetch(connection, TAKE, parameters | {"series": series})
    return [Claimed._make((*row, True)) for row in rows]


def reopen_partitions(
    connection: BaseDatabaseWrapper, before: Sequence[PartitionRow], *, limiters: Sequence[str]
) -> None:
    """Open partitions again, and note these limiters, as fewer tasks were taken than allotted."""
    ids, holders = [row.id for row in before], [row.holder for row in before]
    change(connection, REOPEN, (list(limiters), ids, holders))
