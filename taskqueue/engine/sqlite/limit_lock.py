"""The first statements of a claim under limits on SQLite.

The caller holds the write lock, so nothing needs to be locked or skipped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.limit_rows import NO_PLACE, LimiterRow, Locked, PartitionRow, Place
from taskqueue.engine.sqlite.values import clock, loaded, stored
from taskqueue.engine.statement import fetch

PARTITION = """
    id, queue_name, lane, limits, limiters, state, head_priority, rank, waits_for, opens_at,
    holder, changed_at"""

NOTED = """
WITH RECURSIVE subject (id) AS (
    SELECT min(subject) FROM taskqueue_limitnote
    UNION ALL
    SELECT (SELECT min(subject) FROM taskqueue_limitnote WHERE subject > subject_before.id)
    FROM subject AS subject_before
    WHERE subject_before.id IS NOT NULL
)
SELECT id FROM subject WHERE id IS NOT NULL LIMIT %s
"""
OPEN = f"""
SELECT {PARTITION}
FROM taskqueue_partition AS partition
WHERE state = 'open' AND queue_name = %(queue_name)s AND lane = %(lane)s
    AND head_priority <= COALESCE(%(priority)s, 32767)
    AND (
        %(id)s IS NULL OR head_priority < %(priority)s OR (rank, id) > (%(rank)s, %(id)s)
    )
    AND (limits IS NOT NULL OR EXISTS (
        SELECT 1
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0 AND queue_name = partition.queue_name
    ))
ORDER BY head_priority DESC, rank, id
LIMIT %(size)s
"""  # noqa: S608  (of constants)
BY_ID = f"""
SELECT {PARTITION}
FROM taskqueue_partition
WHERE id IN (SELECT value FROM json_each(%s))
"""  # noqa: S608  (of constants)
DUE = f"""
SELECT {PARTITION}
FROM taskqueue_partition
WHERE opens_at <= %s
ORDER BY opens_at
LIMIT %s
"""  # noqa: S608  (of constants)
# Notes whose subject is neither a partition nor a limiter.
MISSING = """
SELECT asked.value
FROM json_each(%s) AS asked
WHERE NOT EXISTS (SELECT 1 FROM taskqueue_partition WHERE id = asked.value)
    AND NOT EXISTS (SELECT 1 FROM taskqueue_limiter WHERE id = asked.value)
"""
HAS_OTHERS = """
SELECT
    EXISTS (SELECT 1 FROM taskqueue_task WHERE status = 'ready' AND route = 0)
    OR EXISTS (SELECT 1 FROM taskqueue_task WHERE status IN ('ready', 'running') AND route = 1)
"""
LIMITED_QUEUES = "SELECT name, limiter_id FROM taskqueue_queue WHERE limiter_id IS NOT NULL"
PAUSED = """
SELECT name
FROM taskqueue_queue
WHERE paused_at IS NOT NULL AND (paused_until IS NULL OR paused_until > %s)
"""
LIMITERS = """
SELECT
    own.id, bound.name,
    COALESCE(bound.concurrency_override, bound.concurrency),
    COALESCE(bound.rate_override, bound.rate),
    COALESCE(bound.seconds_override, bound.seconds),
    bound.smooth, own.starts, own.limit_id
FROM json_each(%s) AS asked
CROSS JOIN taskqueue_limiter AS own ON own.id = asked.value
CROSS JOIN taskqueue_limit AS bound ON bound.id = own.limit_id
"""


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
    now = stored(clock())
    noted = [row[0] for row in fetch(connection, NOTED, (most,))]
    found = []
    for queue_name, lane in lanes:
        place = behind.get((queue_name, lane), NO_PLACE)
        of_lane = {"queue_name": queue_name, "lane": lane, "size": size, **place._asdict()}
        found += fetch(connection, OPEN, of_lane)
    if noted:
        found += fetch(connection, BY_ID, (json.dumps(noted),))
    found += fetch(connection, DUE, (now, size))
    partitions = list(map(partition_from, found))
    queues = {row.queue_name for row in partitions}
    of_queues = dict(fetch(connection, LIMITED_QUEUES))
    asked = {id for row in partitions for id in row.limiters}
    asked |= {*noted, *own, *(id for name, id in of_queues.items() if name in queues)}
    limiters = fetch(connection, LIMITERS, (json.dumps(sorted(asked)),))
    unseen = sorted({*noted} - {row.id for row in partitions} - {row[0] for row in limiters})
    missing = fetch(connection, MISSING, (json.dumps(unseen),)) if unseen else []
    return Locked(
        partitions=partitions,
        limiters=[
            LimiterRow._make((*row[:5], bool(row[5]), row[6] and json.loads(row[6]), row[7]))
            for row in limiters
        ],
        noted=frozenset(noted),
        missing=[row[0] for row in missing],
        lacking=frozenset(asked - {*noted} - {row[0] for row in limiters}),
        of_queues=of_queues,
        paused=frozenset(row[0] for row in fetch(connection, PAUSED, (now,))),
        has_others=bool(fetch(connection, HAS_OTHERS)[0][0]),
    )


def partition_from(row: Sequence[Any]) -> PartitionRow:
    """Return a partition from its columns."""
    id, queue_name, lane, limits, limiters, state, priority, *columns = row
    rank, waits_for, opens_at, holder, changed_at = columns
    opens, changed = loaded(opens_at), loaded(changed_at)
    return PartitionRow(
        id=id,
        queue_name=queue_name,
        lane=lane,
        limits=None if limits is None else json.loads(limits),
        limiters=tuple(json.loads(limiters)),
        state=state,
        head_priority=priority,
        rank=rank,
        waits_for=waits_for,
        opens_at=None if opens is None else opens.timestamp(),
        holder=holder,
        changed_at=0.0 if changed is None else changed.timestamp(),
    )
