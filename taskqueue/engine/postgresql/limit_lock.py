"""Locking partitions and limiters on PostgreSQL, the first statement of a claim under limits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.limit_rows import NO_PLACE, LimiterRow, Locked, PartitionRow, Place
from taskqueue.engine.postgresql.values import numbers, texts, words
from taskqueue.engine.sessions import KEEPS_PLAN, kept_plan
from taskqueue.engine.statement import fetch

# The fields of `PartitionRow`.
PARTITION = """
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

_LANES = """unnest(
        %(queues)s::text[], %(lanes)s::text[],
        %(priorities)s::int[], %(ranks)s::float8[], %(ids)s::uuid[]
    ) AS lane (queue_name, name, past_priority, past_rank, past_id)"""
# The first open partitions of a lane.
_OPEN = """FROM taskqueue_partition AS partition
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
        LIMIT %(size)s"""

# Locks: partitions, skipping locked ones; then all their limiters by id; then other noted rows,
# skipping locked ones. Nobody waits for a partition, and each claim waits for limiters only once
# and in order, so claims cannot deadlock. After waiting for a limiter, the statement reads its
# current values. Notes are read from a random subject on, so that simultaneous claims begin with
# different ones.
_LOCK = f"""
WITH RECURSIVE subject (id, is_again) AS (
    SELECT %(from)s::uuid, false
    UNION ALL
    (
        SELECT following.id, following.is_again
        FROM subject
        CROSS JOIN LATERAL (
            (
                SELECT note.subject AS id, subject.is_again
                FROM taskqueue_limitnote AS note
                WHERE note.subject > subject.id
                ORDER BY note.subject
                LIMIT 1
            )
            UNION ALL
            SELECT '00000000-0000-0000-0000-000000000000', true WHERE NOT subject.is_again
            LIMIT 1
        ) AS following
        WHERE NOT (following.is_again AND following.id > %(from)s::uuid)
    )
), noted AS MATERIALIZED (
    SELECT note.id
    FROM subject
    CROSS JOIN LATERAL (
        SELECT subject AS id FROM taskqueue_limitnote WHERE subject = subject.id LIMIT 1
    ) AS note
    LIMIT %(most)s
), candidate AS MATERIALIZED (
    SELECT best.*
    FROM {_LANES}
    CROSS JOIN LATERAL (
        SELECT {PARTITION}
        {_OPEN}
        FOR UPDATE SKIP LOCKED
    ) AS best
    UNION ALL
    SELECT own.*
    FROM noted
    CROSS JOIN LATERAL (
        SELECT {PARTITION}
        FROM taskqueue_partition
        WHERE id = noted.id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS own
    UNION ALL
    SELECT due.*
    FROM (
        SELECT {PARTITION}
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
), wanted AS MATERIALIZED (
    SELECT jsonb_array_elements_text(limiters)::uuid AS id FROM candidate
    UNION
    SELECT limiter_id FROM limited JOIN candidate ON candidate.queue_name = limited.name
    UNION
    SELECT unnest(%(own)s::uuid[])
    ORDER BY id
), needed AS MATERIALIZED (
    SELECT {_LIMITER}
    FROM wanted
    CROSS JOIN LATERAL (
        SELECT *
        FROM taskqueue_limiter
        WHERE id = wanted.id
        LIMIT 1
        FOR UPDATE{{at_once}}
    ) AS own
    JOIN taskqueue_limit AS bound ON bound.id = ANY (ARRAY[own.limit_id])
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
    (SELECT json_agg(candidate) FROM candidate)::text,
    (SELECT json_agg(limiter) FROM limiter)::text,
    (SELECT json_agg(id) FROM noted)::text,
    (
        SELECT json_agg(id)
        FROM noted
        WHERE id <> ALL (ARRAY(SELECT id FROM candidate))
            AND id <> ALL (ARRAY(SELECT id FROM limiter))
            AND NOT EXISTS (SELECT 1 FROM taskqueue_partition WHERE id = noted.id)
            AND NOT EXISTS (SELECT 1 FROM taskqueue_limiter WHERE id = noted.id)
    )::text,
    (
        SELECT json_agg(id)
        FROM wanted
        WHERE id <> ALL (ARRAY(SELECT id FROM needed))
            AND NOT EXISTS (SELECT 1 FROM taskqueue_limiter WHERE id = wanted.id)
    )::text,
    (SELECT json_object_agg(name, limiter_id) FROM limited)::text,
    (
        SELECT json_agg(name)
        FROM taskqueue_queue
        WHERE paused_at IS NOT NULL AND (paused_until IS NULL OR paused_until > clock_timestamp())
    )::text,
    EXISTS (SELECT 1 FROM taskqueue_task WHERE status = 'ready' AND route = 0)
        OR EXISTS (
            SELECT 1 FROM taskqueue_task WHERE status IN ('ready', 'running') AND route = 1
        ),
    EXISTS (
        SELECT 1
        FROM {_LANES}
        CROSS JOIN LATERAL (
            SELECT id
        {_OPEN}
        ) AS seen
        WHERE seen.id <> ALL (ARRAY(SELECT id FROM candidate))
    )
WHERE {KEEPS_PLAN}
"""  # noqa: S608  (of constants)
LOCK = _LOCK.replace("{at_once}", "")
LOCK_AT_ONCE = _LOCK.replace("{at_once}", " SKIP LOCKED")


def lock_limits(
    connection: BaseDatabaseWrapper,
    *,
    lanes: Sequence[tuple[str, str]],
    own: Sequence[str],
    size: int,
    most: int,
    waits: bool,
    first: UUID,
    behind: Mapping[tuple[str, str], Place],
) -> Locked:
    """Lock open partitions of these queues and lanes, noted partitions, and all their limiters.

    `waits`: wait for limiters that other sessions have locked. `first`: the subject after which
    notes are read first. In lanes of `behind`, only partitions after these positions are locked.
    """
    statement = LOCK if waits else LOCK_AT_ONCE
    places = [behind.get(lane, NO_PLACE) for lane in lanes]
    parameters = {
        "queues": texts([queue_name for queue_name, _ in lanes]),
        "lanes": texts([lane for _, lane in lanes]),
        "priorities": numbers([place.priority for place in places]),
        "ranks": numbers([place.rank for place in places]),
        "ids": words([place.id for place in places]),
        "own": words(own), "size": size, "most": most, "from": first,
    }  # fmt: skip
    with kept_plan(connection) as series:
        rows = fetch(connection, statement, parameters | {"series": series})
    ((partitions, limiters, noted, missing, lacking, of_queues, paused, *others),) = rows
    has_others, has_skipped = others
    return Locked(
        partitions=partitions_from(partitions),
        limiters=[LimiterRow(bare(row.pop("id")), **row) for row in json.loads(limiters or "[]")],
        noted=frozenset(map(bare, json.loads(noted or "[]"))),
        missing=sorted(map(bare, json.loads(missing or "[]"))),
        lacking=frozenset(map(bare, json.loads(lacking or "[]"))),
        of_queues={name: bare(id) for name, id in json.loads(of_queues or "{}").items()},
        paused=frozenset(json.loads(paused or "[]")),
        has_others=has_others,
        has_skipped=has_skipped,
    )


def partitions_from(text: str | None) -> list[PartitionRow]:
    """Return partitions from a statement's JSON."""
    return [_partition(row) for row in json.loads(text or "[]")]


def _partition(row: dict[str, Any]) -> PartitionRow:
    for name in ("id", "waits_for", "holder"):
        row[name] = row[name] and bare(row[name])
    # JSON turns whole numbers into integers, and the driver takes no lists with both types.
    row["rank"], row["changed_at"] = float(row["rank"]), float(row["changed_at"])
    row["opens_at"] = row["opens_at"] and float(row["opens_at"])
    row["limiters"] = tuple(map(bare, row["limiters"]))
    return PartitionRow(**row)


def bare(id: str) -> str:
    """Return an id as 32 hexadecimal digits."""
    return id.replace("-", "")
