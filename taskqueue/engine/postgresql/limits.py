"""Claiming under limits on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.postgresql.claim import CLAIMED, PAUSES
from taskqueue.engine.rows import (
    NO_PLACE,
    Claimed,
    Counted,
    Holder,
    LimiterRow,
    Locked,
    PartitionRow,
    Place,
    ReadyTask,
    Taking,
    least_by_lane,
)
from taskqueue.engine.sessions import KEEPS_PLAN, kept_plan
from taskqueue.engine.statement import change, fetch

# The fields of `PartitionRow`.
_PARTITION = """
    id, queue_name, lane, limits, limiters, state, head_priority, rank, waits_for,
    EXTRACT(epoch FROM opens_at)::float8 AS opens_at, holder,
    EXTRACT(epoch FROM changed_at)::float8 AS changed_at"""

# The fields of `LimiterRow`.
_LIMITER = """
        own.id, bound.name,
        COALESCE(bound.concurrency_override, bound.concurrency) AS concurrency,
        COALESCE(bound.rate_override, bound.rate) AS rate,
        COALESCE(bound.seconds_override, bound.seconds) AS seconds,
        bound.smooth, own.starts, own.limit_id"""

# Locks: partitions, skipping locked ones; then all their limiters, by id; then others that were
# noted, skipping locked ones. Nobody waits for a partition, and everybody for limiters once and in
# order, so that claims never wait for each other in a circle. Who waits for a limiter reads it as
# it is then.
LOCK = f"""
WITH RECURSIVE subject (id) AS (
    (SELECT subject FROM taskqueue_limitnote ORDER BY subject LIMIT 1)
    UNION ALL
    SELECT (
        SELECT note.subject
        FROM taskqueue_limitnote AS note
        WHERE note.subject > subject.id
        ORDER BY note.subject
        LIMIT 1
    )
    FROM subject
    WHERE subject.id IS NOT NULL
), noted AS MATERIALIZED (
    SELECT id FROM subject WHERE id IS NOT NULL LIMIT %(most)s
), candidate AS MATERIALIZED (
    SELECT best.*
    FROM unnest(
        %(queues)s::text[], %(lanes)s::text[],
        %(priorities)s::int[], %(ranks)s::float8[], %(ids)s::uuid[]
    ) AS lane (queue_name, name, past_priority, past_rank, past_id)
    CROSS JOIN LATERAL (
        SELECT {_PARTITION}
        FROM taskqueue_partition AS partition
        WHERE state = 'open' AND queue_name = lane.queue_name AND lane = lane.name
            AND head_priority <= COALESCE(lane.past_priority, 32767)
            AND (lane.past_id IS NULL OR head_priority < lane.past_priority
                OR (rank, id) > (lane.past_rank, lane.past_id))
            AND (limits IS NOT NULL OR EXISTS (
                SELECT 1
                FROM taskqueue_task
                WHERE status = 'ready' AND route = 0 AND queue_name = partition.queue_name
            ))
        ORDER BY head_priority DESC, rank, id
        LIMIT %(size)s
        FOR UPDATE SKIP LOCKED
    ) AS best
    UNION ALL
    SELECT own.*
    FROM noted
    CROSS JOIN LATERAL (
        SELECT {_PARTITION}
        FROM taskqueue_partition
        WHERE id = noted.id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS own
    UNION ALL
    SELECT due.*
    FROM (
        SELECT {_PARTITION}
        FROM taskqueue_partition AS partition
        WHERE partition.opens_at <= statement_timestamp()
        ORDER BY partition.opens_at
        LIMIT %(size)s
        FOR UPDATE SKIP LOCKED
    ) AS due
), limited AS MATERIALIZED (
    SELECT name, limiter_id
    FROM taskqueue_queue
    WHERE limiter_id IS NOT NULL
), needed AS MATERIALIZED (
    SELECT {_LIMITER}
    FROM taskqueue_limiter AS own
    JOIN taskqueue_limit AS bound ON bound.id = ANY (ARRAY[own.limit_id])
    WHERE own.id = ANY (ARRAY(
        SELECT jsonb_array_elements_text(limiters)::uuid FROM candidate
        UNION
        SELECT limiter_id FROM limited JOIN candidate ON candidate.queue_name = limited.name
        UNION
        SELECT unnest(%(own)s::uuid[])
    ))
    ORDER BY own.id
    FOR UPDATE OF own
), noted_too AS MATERIALIZED (
    SELECT {_LIMITER}
    FROM noted
    CROSS JOIN LATERAL (
        SELECT *
        FROM taskqueue_limiter
        WHERE id = noted.id AND id <> ALL (ARRAY(SELECT id FROM needed))
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS own
    JOIN taskqueue_limit AS bound ON bound.id = ANY (ARRAY[own.limit_id])
), limiter AS (
    SELECT * FROM needed
    UNION ALL
    SELECT * FROM noted_too
)
SELECT
    (SELECT jsonb_agg(to_jsonb(candidate)) FROM candidate)::text,
    (SELECT jsonb_agg(to_jsonb(limiter)) FROM limiter)::text,
    (SELECT jsonb_agg(id) FROM noted)::text,
    (SELECT jsonb_object_agg(name, limiter_id) FROM limited)::text,
    (
        SELECT jsonb_agg(name)
        FROM taskqueue_queue
        WHERE paused_at IS NOT NULL AND (paused_until IS NULL OR paused_until > clock_timestamp())
    )::text
WHERE {KEEPS_PLAN}
"""  # noqa: S608  (of constants)

# Whether this worker may run it: it knows the definition, which is not paused.
_IS_KNOWN = f"(name <> ALL (%(unknown)s::text[]) AND name <> ALL ({PAUSES}))"

# A statement of its own: its snapshot sees all that was committed by those who held the locks.
# Notes are deleted here, of what is locked, so that whoever writes one later is not forgotten. Of
# very many some are left: a million took ten seconds, in which all others waited for the limiter.
#
# What waits for a limiter is looked at as what is open: of each lane the first in its order. Across
# lanes nothing tells them apart, for the virtual time of a tenant is no time of day.
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
        SELECT {_PARTITION}
        FROM taskqueue_partition
        WHERE waits_for = waiting_lane.limiter_id
            AND queue_name = waiting_lane.queue_name AND lane = waiting_lane.lane
        ORDER BY head_priority DESC, rank, id
        LIMIT %(size)s
        FOR UPDATE SKIP LOCKED
    ) AS waiting
), asked AS MATERIALIZED (
    SELECT * FROM unnest(%(partitions)s::uuid[], %(sizes)s::int[]) AS given (id, most)
    UNION ALL
    SELECT id, most FROM freed WHERE id <> ALL (%(partitions)s::uuid[])
), task AS (
    SELECT asked.id AS partition, ready.*
    FROM asked
    CROSS JOIN LATERAL (
        SELECT
            id, priority, EXTRACT(epoch FROM run_after)::float8 AS due,
            COALESCE((limits ->> 'cost')::int, 1) AS cost,
            {_IS_KNOWN} AS is_known,
            COALESCE((limits -> 'tenant' ->> 'weight')::float8, 1) AS weight
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 2 AND partition = asked.id
            AND (limits ? 'sequence' OR {_IS_KNOWN}) AND '' <> ALL ({PAUSES})
            AND (expires_at IS NULL OR started_at IS NOT NULL OR expires_at > clock_timestamp())
            AND (deadline_at IS NULL OR deadline_at > clock_timestamp())
        ORDER BY priority DESC, run_after, id
        LIMIT asked.most
    ) AS ready
    UNION ALL
    -- The one that holds a sequence up, behind however many others it is.
    SELECT asked.id, holder.*
    FROM asked
    JOIN taskqueue_partition AS own ON own.id = ANY (ARRAY[asked.id])
    CROSS JOIN LATERAL (
        SELECT
            id, priority, EXTRACT(epoch FROM run_after)::float8,
            COALESCE((limits ->> 'cost')::int, 1), {_IS_KNOWN},
            COALESCE((limits -> 'tenant' ->> 'weight')::float8, 1)
        FROM taskqueue_task
        WHERE id = own.holder AND status = 'ready' AND partition = asked.id
            AND '' <> ALL ({PAUSES})
            AND (deadline_at IS NULL OR deadline_at > clock_timestamp())
        LIMIT 1
    ) AS holder
    UNION ALL
    SELECT of_queue.id, ready.*
    FROM unnest(%(of_queues)s::uuid[], %(queues)s::text[]) AS of_queue (id, queue_name)
    CROSS JOIN LATERAL (
        SELECT id, priority, EXTRACT(epoch FROM run_after)::float8 AS due, 1, true, 1::float8
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0 AND queue_name = of_queue.queue_name
            AND {_IS_KNOWN} AND '' <> ALL ({PAUSES})
            AND (expires_at IS NULL OR started_at IS NOT NULL OR expires_at > clock_timestamp())
            AND (deadline_at IS NULL OR deadline_at > clock_timestamp())
        ORDER BY priority DESC, run_after, id
        LIMIT %(want)s
    ) AS ready
), running AS (
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
    (SELECT jsonb_object_agg(id, number) FROM running)::text,
    (SELECT jsonb_agg(to_jsonb(freed) - 'most') FROM freed)::text,
    (
        SELECT jsonb_agg(jsonb_build_array(
            id, partition, priority, due, cost, is_known, weight
        ))
        FROM task
    )::text,
    (
        SELECT jsonb_object_agg(partition.id, jsonb_build_array(
            task.status, COALESCE((task.limits -> 'sequence' ->> 'halts')::boolean, false)
        ))
        FROM asked
        JOIN taskqueue_partition AS partition ON partition.id = ANY (ARRAY[asked.id])
        JOIN taskqueue_task AS task ON task.id = ANY (ARRAY[partition.holder])
    )::text,
    (
        SELECT jsonb_agg(jsonb_build_array(queue_name, lane, rank))
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
        SELECT jsonb_agg(jsonb_build_array(queue_name, lane, rank))
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
        SELECT jsonb_agg(jsonb_build_array(
            id, COALESCE(concurrency_override, concurrency), COALESCE(rate_override, rate),
            COALESCE(seconds_override, seconds), smooth
        ))
        FROM taskqueue_limit
        WHERE id = ANY (%(limits)s::bigint[])
    )::text,
    -- A lock of a row that turned out to be no longer open is held to the end, by a claim that
    -- knows nothing of it.
    (
        SELECT jsonb_agg(DISTINCT limiter_id)
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
    )::text
WHERE {KEEPS_PLAN}
"""  # noqa: S608  (of constants)

# Locks: ready tasks by the order of the claim, skipping locked ones. The caller holds partitions
# and limiters. A partition is empty where this snapshot sees no other ready task of it: of one that
# is committed later the note is still there. One that somebody holds is ready too.
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
        %(opens)s::float8[], %(holders)s::uuid[], %(stays)s::bool[]
    ) AS move (id, state, rank, waits_for, opens_at, holder, stays)
    LEFT JOIN LATERAL (
        SELECT priority, run_after
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 2 AND partition = move.id
            AND id <> ALL (ARRAY(SELECT id FROM picked))
        ORDER BY priority DESC, run_after, id
        LIMIT 1
    ) AS head ON true
    WHERE partition.id = ANY (ARRAY[move.id])
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

# What was to be taken and was not may have left places, also for others that wait for them.
REOPEN = """
WITH noted AS (
    INSERT INTO taskqueue_limitnote (subject) SELECT unnest(%s::uuid[])
)
UPDATE taskqueue_partition AS partition
SET state = 'open', waits_for = NULL, opens_at = NULL, holder = before.holder
FROM unnest(%s::uuid[], %s::uuid[]) AS before (id, holder)
WHERE partition.id = ANY (ARRAY[before.id]) AND partition.state <> 'empty'
"""


def lock_limits(
    connection: BaseDatabaseWrapper,
    *,
    lanes: Sequence[tuple[str, str]],
    own: Sequence[str],
    size: int,
    most: int,
    behind: Mapping[tuple[str, str], Place],
) -> Locked:
    """Lock open partitions of these queues and lanes, what was noted, and all their limiters.

    Of the lanes in `behind` those that come after these places.
    """
    places = [behind.get(lane, NO_PLACE) for lane in lanes]
    parameters = {
        "queues": [queue_name for queue_name, _ in lanes], "lanes": [lane for _, lane in lanes],
        "priorities": [place.priority for place in places],
        "ranks": [place.rank for place in places], "ids": [place.id for place in places],
        "own": list(own), "size": size, "most": most,
    }  # fmt: skip
    with kept_plan(connection) as series:
        rows = fetch(connection, LOCK, parameters | {"series": series})
    ((partitions, limiters, noted, of_queues, paused),) = rows
    return Locked(
        partitions=_partitions(partitions),
        limiters=[LimiterRow(_hex(row.pop("id")), **row) for row in json.loads(limiters or "[]")],
        noted=frozenset(map(_hex, json.loads(noted or "[]"))),
        of_queues={name: _hex(id) for name, id in json.loads(of_queues or "{}").items()},
        paused=frozenset(json.loads(paused or "[]")),
    )


def count_limits(
    connection: BaseDatabaseWrapper,
    locked: Locked,
    *,
    partitions: Sequence[PartitionRow],
    unknown: Sequence[str],
    want: int,
    size: int,
) -> Counted:
    """Count what runs under locked limiters, and forget the notes of what is locked."""
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
        # One that came meanwhile of another limiter is left: nothing is opened here that waits
        # for it.
        "subjects": [*noted, *(row.id for row in partitions)],
        "noted": noted,
        "most": [max(1, min(want, places.get(id, want))) for id in noted],
        "partitions": [row.id for row in own],
        # No more than could have a place.
        "sizes": [
            max(1, min([want, *(places.get(id, want) for id in row.limiters)])) for row in own
        ],
        "of_queues": [row.id for row in of_queues],
        "queues": [row.queue_name for row in of_queues],
        "limiters": limiters,
        "limits": sorted({limiter.limit_id for limiter in locked.limiters}),
        "fair_queues": [queue_name for queue_name, _ in fair],
        "fair_lanes": [lane for _, lane in fair],
        "unknown": list(unknown),
        "want": want,
        "size": size,
    }
    with kept_plan(connection) as series:
        rows = fetch(connection, COUNT, parameters | {"series": series})
    ((now, running, freed, tasks, holders, floors, others, bounds, skipped),) = rows
    by_partition: dict[str, list[ReadyTask]] = {}
    for id, partition, *columns in json.loads(tasks or "[]"):
        task = ReadyTask(_hex(id), _hex(partition), *columns)
        by_partition.setdefault(task.partition, []).append(task)
    return Counted(
        now=now,
        running={_hex(id): number for id, number in json.loads(running or "{}").items()},
        freed=_partitions(freed),
        tasks=by_partition,
        holders={_hex(id): Holder(*each) for id, each in json.loads(holders or "{}").items()},
        floors=least_by_lane([*json.loads(floors or "[]"), *json.loads(others or "[]")]),
        bounds={id: tuple(numbers) for id, *numbers in json.loads(bounds or "[]")},
        skipped=list(map(_hex, json.loads(skipped or "[]"))),
    )


def take_limited(
    connection: BaseDatabaseWrapper,
    taking: Taking,
    counted: Counted,
    *,
    worker: str,
    lease_duration: timedelta,
) -> list[Claimed]:
    """Lease the tasks that can still be had, and write partitions and limiters."""
    places = [(id, limiter) for id, limiters in taking.tasks for limiter in limiters]
    moves = taking.moves
    parameters = {
        "tasks": [id for id, _ in taking.tasks],
        "partitions": [partition for partition, _ in taking.found_in],
        "queues": [queue_name for _, queue_name in taking.found_in],
        "limited": [id for id, _ in places],
        "limiters": [limiter for _, limiter in places],
        "ids": [move.id for move in moves],
        "states": [move.state for move in moves],
        "ranks": [move.rank for move in moves],
        "waits": [move.waits_for for move in moves],
        "opens": [move.opens_at for move in moves],
        "holders": [move.holder for move in moves],
        "stays": [move.stays for move in moves],
        "started": list(taking.starts),
        "starts": list(map(json.dumps, taking.starts.values())),
        "again": taking.again,
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
    """Open partitions again, and note these limiters, where less was taken than allotted."""
    ids, holders = [row.id for row in before], [row.holder for row in before]
    change(connection, REOPEN, (list(limiters), ids, holders))


def is_fair(row: PartitionRow) -> bool:
    """Return whether it is a tenant's."""
    return row.limits is not None and "tenant" in row.limits


def _partitions(text: str | None) -> list[PartitionRow]:
    return [_partition(row) for row in json.loads(text or "[]")]


def _partition(row: dict[str, Any]) -> PartitionRow:
    for name in ("id", "waits_for", "holder"):
        row[name] = row[name] and _hex(row[name])
    # JSON makes integers of whole ones, and the driver takes no lists of both.
    row["rank"], row["changed_at"] = float(row["rank"]), float(row["changed_at"])
    row["opens_at"] = row["opens_at"] and float(row["opens_at"])
    row["limiters"] = tuple(map(_hex, row["limiters"]))
    return PartitionRow(**row)


def _hex(id: str) -> str:
    return id.replace("-", "")
