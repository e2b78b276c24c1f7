"""Counting places and reading tasks on PostgreSQL, the second statement of a claim under limits."""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.limit_rows import (
    Counted,
    Holder,
    Locked,
    PartitionRow,
    ReadyTask,
    least_by_lane,
)
from taskqueue.engine.postgresql.limit_lock import PARTITION, bare, partitions_from
from taskqueue.engine.postgresql.limit_tasks import RIVALS, TASKS
from taskqueue.engine.postgresql.values import numbers, texts, words
from taskqueue.engine.sessions import KEEPS_PLAN, kept_plan
from taskqueue.engine.statement import fetch

_COLUMNS = ", ".join(PartitionRow._fields)
# A separate statement, whose snapshot sees everything that earlier holders of the locks have
# committed. The notes of locked rows are deleted here, so a note that is written later is not lost.
# If there are very many notes, some are left: a million took ten seconds, during which all other
# claims waited for the limiter.
#
# Partitions that wait for a limiter are read like open ones: the first of each lane, in its order.
# Partitions of different lanes cannot be compared, because the virtual time of a tenant is not a
# time of day.
#
# Locks: partitions that wait for a limiter that the caller holds, skipping locked ones.
COUNT = f"""
WITH RECURSIVE waiting_lane (limiter_id, most, queue_name, lane) AS (
    SELECT noted.id, noted.most, first.queue_name, first.lane
    FROM unnest(%(noted)s::uuid[], %(most)s::int[]) AS noted (id, most)
    CROSS JOIN LATERAL (
        SELECT queue_name, lane
        FROM taskqueue_partition
        WHERE waits_for = noted.id
        ORDER BY queue_name, lane
        LIMIT 1
    ) AS first
    UNION ALL
    SELECT limiter_id, most, following.queue_name, following.lane
    FROM waiting_lane
    CROSS JOIN LATERAL (
        SELECT queue_name, lane
        FROM taskqueue_partition
        WHERE waits_for = waiting_lane.limiter_id
            AND (queue_name, lane) > (waiting_lane.queue_name, waiting_lane.lane)
        ORDER BY queue_name, lane
        LIMIT 1
    ) AS following
), forgotten AS (
    DELETE FROM taskqueue_limitnote
    WHERE ctid = ANY (ARRAY(
        SELECT note.ctid
        FROM unnest(%(subjects)s::uuid[]) AS asked (id)
        CROSS JOIN LATERAL (
            SELECT ctid FROM taskqueue_limitnote WHERE subject = asked.id LIMIT 2000
        ) AS note
        LIMIT 5000
    ))
), freed AS MATERIALIZED (
    SELECT waiting.*, waiting_lane.most
    FROM waiting_lane
    CROSS JOIN LATERAL (
        SELECT {PARTITION}
        FROM taskqueue_partition
        WHERE waits_for = waiting_lane.limiter_id
            AND queue_name = waiting_lane.queue_name AND lane = waiting_lane.lane
        ORDER BY head_priority DESC, rank, id
        LIMIT %(size)s
        FOR UPDATE SKIP LOCKED
    ) AS waiting
), asked AS MATERIALIZED (
    SELECT *
    FROM unnest(%(partitions)s::uuid[], %(sizes)s::int[], %(sequences)s::bool[])
        AS given (id, most, is_sequence)
    UNION ALL
    SELECT id, most, COALESCE(limits ? 'sequence', false)
    FROM freed
    WHERE id <> ALL (%(partitions)s::uuid[])
), task AS ({TASKS}), running AS (
    SELECT limiter.id, count(*) AS number
    FROM unnest(%(limiters)s::uuid[]) AS limiter (id)
    CROSS JOIN LATERAL (
        SELECT lease_id FROM taskqueue_slot WHERE limiter_id = limiter.id OFFSET 0
    ) AS slot
    CROSS JOIN LATERAL (
        SELECT 1 FROM taskqueue_lease WHERE id = slot.lease_id AND finished_at IS NULL LIMIT 1
    ) AS lease
    GROUP BY limiter.id
)
SELECT
    clock_timestamp(),
    (SELECT json_object_agg(id, number) FROM running)::text,
    (SELECT json_agg(row) FROM (SELECT {_COLUMNS} FROM freed) AS row)::text,
    (
        SELECT json_agg(json_build_array(
            id, partition, priority, due, cost, is_known, weight
        ))
        FROM task
    )::text,
    (
        SELECT json_object_agg(partition.id, json_build_array(
            task.status, COALESCE((task.limits -> 'sequence' ->> 'halts')::boolean, false)
        ))
        FROM asked
        JOIN taskqueue_partition AS partition ON partition.id = ANY (ARRAY[asked.id])
        JOIN taskqueue_task AS task ON task.id = ANY (ARRAY[partition.holder])
        WHERE asked.is_sequence
    )::text,
    (
        SELECT json_agg(json_build_array(queue_name, lane, rank))
        FROM unnest(%(fair_queues)s::text[], %(fair_lanes)s::text[]) AS fair (queue_name, lane)
        CROSS JOIN LATERAL (
            SELECT rank
            FROM taskqueue_partition
            WHERE state = 'open' AND queue_name = fair.queue_name AND lane = fair.lane
            ORDER BY head_priority DESC, rank, id
            LIMIT 1
        ) AS least
    )::text,
    (
        SELECT json_agg(json_build_array(queue_name, lane, rank))
        FROM unnest(%(limiters)s::uuid[]) AS limiter (id)
        CROSS JOIN unnest(%(fair_queues)s::text[], %(fair_lanes)s::text[])
            AS fair (queue_name, lane)
        CROSS JOIN LATERAL (
            SELECT rank
            FROM taskqueue_partition
            WHERE waits_for = limiter.id AND queue_name = fair.queue_name AND lane = fair.lane
            ORDER BY head_priority DESC, rank, id
            LIMIT 1
        ) AS least
    )::text,
    (
        SELECT json_agg(json_build_array(
            id, COALESCE(concurrency_override, concurrency), COALESCE(rate_override, rate),
            COALESCE(seconds_override, seconds), smooth
        ))
        FROM taskqueue_limit
        WHERE id = ANY (%(limits)s::bigint[])
    )::text,
    -- A lock of a row that turned out to be no longer open is held to the end, by a claim that
    -- knows nothing of it.
    (
        SELECT json_agg(DISTINCT limiter_id)
        FROM waiting_lane
        WHERE (
            SELECT count(*)
            FROM (
                SELECT 1
                FROM taskqueue_partition
                WHERE waits_for = waiting_lane.limiter_id
                    AND queue_name = waiting_lane.queue_name AND lane = waiting_lane.lane
                LIMIT %(size)s
            ) AS waiting
        ) > (
            SELECT count(*)
            FROM freed
            WHERE waits_for = waiting_lane.limiter_id
                AND queue_name = waiting_lane.queue_name AND lane = waiting_lane.lane
        )
    )::text,
    {RIVALS}
WHERE {KEEPS_PLAN}
"""  # noqa: S608  (of constants)


def count_limits(
    connection: BaseDatabaseWrapper,
    locked: Locked,
    *,
    partitions: Sequence[PartitionRow],
    unknown: Sequence[str],
    want: int,
    depth: int,
    size: int,
    rivals: Sequence[str],
) -> Counted:
    """Count the running leases of locked limiters, and delete the notes of locked rows.

    `depth`: the most tasks to read of each partition; for a limited queue it is `want`.
    """
    limiters = [limiter.id for limiter in locked.limiters]
    places = {
        limiter.id: limiter.concurrency
        for limiter in locked.limiters
        if limiter.concurrency is not None
    }
    own = [row for row in partitions if row.limits is not None]
    noted = [id for id in limiters if id in locked.noted]
    fair = sorted({(row.queue_name, row.lane) for row in partitions if is_fair(row)})
    of_queues = [row for row in partitions if row.limits is None]
    parameters = {
        # A note of another limiter that was written meanwhile is left: nothing is opened here that
        # waits for that limiter.
        "subjects": words([*noted, *(row.id for row in partitions)]),
        "noted": words(noted),
        "most": numbers([max(1, min(depth, places.get(id, depth))) for id in noted]),
        "partitions": words([row.id for row in own]),
        # No more tasks than could get a place.
        "sizes": numbers(
            [max(1, min([depth, *(places.get(id, depth) for id in row.limiters)])) for row in own]
        ),
        "sequences": numbers(["sequence" in (row.limits or {}) for row in own]),
        "of_queues": words([row.id for row in of_queues]),
        "queues": texts([row.queue_name for row in of_queues]),
        "limiters": words(limiters),
        "limits": numbers(sorted({limiter.limit_id for limiter in locked.limiters})),
        "fair_queues": texts([queue_name for queue_name, _ in fair]),
        "fair_lanes": texts([lane for _, lane in fair]),
        "unknown": texts(unknown),
        "want": want,
        "size": size,
        "rivals": texts(rivals),
    }
    with kept_plan(connection) as series:
        rows = fetch(connection, COUNT, parameters | {"series": series})
    ((now, running, freed, tasks, holders, floors, others, bounds, skipped, best),) = rows
    by_partition: dict[str, list[ReadyTask]] = {}
    for id, partition, *columns in json.loads(tasks or "[]"):
        task = ReadyTask(bare(id), bare(partition), *columns)
        by_partition.setdefault(task.partition, []).append(task)
    return Counted(
        now=now,
        running={bare(id): number for id, number in json.loads(running or "{}").items()},
        freed=partitions_from(freed),
        tasks=by_partition,
        holders={bare(id): Holder(*each) for id, each in json.loads(holders or "{}").items()},
        floors=least_by_lane([*json.loads(floors or "[]"), *json.loads(others or "[]")]),
        bounds={id: tuple(numbers) for id, *numbers in json.loads(bounds or "[]")},
        skipped=list(map(bare, json.loads(skipped or "[]"))),
        rivals={name: (priority, due) for name, priority, due in json.loads(best or "[]")},
    )


def is_fair(row: PartitionRow) -> bool:
    """Return whether the partition belongs to a tenant."""
    return row.limits is not None and "tenant" in row.limits
