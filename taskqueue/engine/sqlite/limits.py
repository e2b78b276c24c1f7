"""Claiming under limits on SQLite.

The caller holds the write lock, so nothing needs to be locked or skipped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.rows import (
    NO_PLACE,
    Claimed,
    Counted,
    Holder,
    LimiterRow,
    Locked,
    Move,
    PartitionRow,
    Place,
    ReadyTask,
    Taking,
    least_by_lane,
)
from taskqueue.engine.sqlite.claim import CLAIM, CLAIMED, PAUSES
from taskqueue.engine.sqlite.values import TASKS_BY_ID, clock, dashed, loaded, rows, stored
from taskqueue.engine.statement import change, fetch

_PARTITION = """
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
SELECT {_PARTITION}
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
SELECT {_PARTITION}
FROM taskqueue_partition
WHERE id IN (SELECT value FROM json_each(%s))
"""  # noqa: S608  (of constants)
DUE = f"""
SELECT {_PARTITION}
FROM taskqueue_partition
WHERE opens_at <= %s
ORDER BY opens_at
LIMIT %s
"""  # noqa: S608  (of constants)
WAITING = f"""
SELECT {_PARTITION}
FROM taskqueue_partition
WHERE waits_for = %s AND queue_name = %s AND lane = %s
ORDER BY head_priority DESC, rank, id
LIMIT %s
"""  # noqa: S608  (of constants)
# The lanes of what waits for a limiter, by a loose scan of the index.
WAITING_LANES = """
WITH RECURSIVE waiting_lane (queue_name, lane) AS (
    SELECT * FROM (
        SELECT queue_name, lane
        FROM taskqueue_partition
        WHERE waits_for = %(limiter)s
        ORDER BY queue_name, lane
        LIMIT 1
    ) AS first
    UNION ALL
    SELECT following.queue_name, following.lane
    FROM waiting_lane
    JOIN taskqueue_partition AS following ON following.id = (
        SELECT id
        FROM taskqueue_partition
        WHERE waits_for = %(limiter)s
            AND (queue_name, lane) > (waiting_lane.queue_name, waiting_lane.lane)
        ORDER BY queue_name, lane
        LIMIT 1
    )
)
SELECT queue_name, lane FROM waiting_lane
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
# Of very many notes some are left, so that others get the write lock.
FORGET = """
DELETE FROM taskqueue_limitnote
WHERE id IN (
    SELECT note.id
    FROM json_each(%s) AS asked
    CROSS JOIN taskqueue_limitnote AS note ON note.subject = asked.value
    LIMIT 5000
)
"""
RUNNING = """
SELECT slot.limiter_id, count(*)
FROM json_each(%s) AS asked
CROSS JOIN taskqueue_slot AS slot ON slot.limiter_id = asked.value
CROSS JOIN taskqueue_lease AS lease ON lease.id = slot.lease_id
WHERE lease.finished_at IS NULL
GROUP BY slot.limiter_id
"""
# Whether this worker may run it: it knows the definition, which is not paused.
_IS_KNOWN = f"""(
        name NOT IN (SELECT value FROM json_each(%(unknown)s)) AND name NOT IN {PAUSES}
    )"""  # noqa: S608  (of constants)
_MAY_START = f"""
    AND '' NOT IN {PAUSES}
    AND (expires_at IS NULL OR started_at IS NOT NULL OR expires_at > %(now)s)
    AND (deadline_at IS NULL OR deadline_at > %(now)s)
ORDER BY priority DESC, run_after, id
LIMIT %(want)s
"""
_READY = "id, priority, (julianday(run_after) - 2440587.5) * 86400.0"
_LIMITED = f"""
    {_READY}, COALESCE(json_extract(limits, '$.cost'), 1),
    {_IS_KNOWN},
    COALESCE(json_extract(limits, '$.tenant.weight'), 1)
"""
TASKS = f"""
SELECT {_LIMITED}
FROM taskqueue_task
WHERE status = 'ready' AND route = 2 AND partition = %(id)s
    AND (
        json_extract(limits, '$.sequence') IS NOT NULL
        OR {_IS_KNOWN}
    )
{_MAY_START}
"""  # noqa: S608  (of constants)
TASKS_OF_QUEUE = f"""
SELECT {_READY}, 1, true, 1
FROM taskqueue_task
WHERE status = 'ready' AND route = 0 AND queue_name = %(queue_name)s
    AND {_IS_KNOWN}
{_MAY_START}
"""  # noqa: S608  (of constants)
# The one that holds a sequence up, behind however many others it is.
HOLDER = f"""
SELECT {_LIMITED}
FROM taskqueue_task
WHERE id = %(holder)s AND status = 'ready' AND partition = %(id)s AND '' NOT IN {PAUSES}
    AND (deadline_at IS NULL OR deadline_at > %(now)s)
"""  # noqa: S608  (of constants)
HOLDERS = """
SELECT partition.id, task.status, COALESCE(json_extract(task.limits, '$.sequence.halts'), 0)
FROM json_each(%s) AS asked
CROSS JOIN taskqueue_partition AS partition ON partition.id = asked.value
CROSS JOIN taskqueue_task AS task ON task.id = partition.holder
"""
LEAST = """
SELECT rank
FROM taskqueue_partition
WHERE state = 'open' AND queue_name = %s AND lane = %s
ORDER BY head_priority DESC, rank, id
LIMIT 1
"""
PICK = f"""
SELECT {CLAIMED.format(failures="failures")}
FROM {TASKS_BY_ID}
WHERE id IN (SELECT value FROM json_each(%(ids)s)) AND status = 'ready'
"""  # noqa: S608  (of constants)
LEASES = """
INSERT INTO taskqueue_lease (
    task_id, worker_id, attempt, status, is_shared, is_limited, claimed_at, expires_at
)
SELECT
    json_extract(value, '$[0]'), %s, json_extract(value, '$[1]'), 'running', false,
    json_extract(value, '$[2]'), %s, json_extract(value, '$[3]')
FROM json_each(%s)
ORDER BY key
"""
SLOTS = """
INSERT INTO taskqueue_slot (limiter_id, lease_id)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(%s)
"""
HEAD = """
SELECT priority, run_after, (julianday(run_after) - 2440587.5) * 86400.0
FROM taskqueue_task
WHERE status = 'ready' AND route = 2 AND partition = %s
ORDER BY priority DESC, run_after, id
LIMIT 1
"""
MOVE = """
UPDATE taskqueue_partition
SET state = %s, waits_for = %s, opens_at = %s, head_priority = COALESCE(%s, head_priority),
    head_at = COALESCE(%s, head_at), rank = COALESCE(%s, rank), holder = %s,
    changed_at = COALESCE(%s, changed_at)
WHERE id = %s
"""
OF_QUEUE = "SELECT limits IS NULL FROM taskqueue_partition WHERE id = %s"
START = "UPDATE taskqueue_limiter SET starts = %s, used_at = %s WHERE id = %s"
NOTE = "INSERT INTO taskqueue_limitnote (subject) SELECT value FROM json_each(%s)"
REOPEN = """
UPDATE taskqueue_partition
SET state = 'open', waits_for = NULL, opens_at = NULL, holder = %s
WHERE id = %s AND state <> 'empty'
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
    partitions = list(map(_partition, found))
    queues = {row.queue_name for row in partitions}
    of_queues = dict(fetch(connection, LIMITED_QUEUES))
    asked = {id for row in partitions for id in row.limiters}
    asked |= {*noted, *own, *(id for name, id in of_queues.items() if name in queues)}
    limiters = fetch(connection, LIMITERS, (json.dumps(sorted(asked)),))
    return Locked(
        partitions=partitions,
        limiters=[
            LimiterRow._make((*row[:5], bool(row[5]), row[6] and json.loads(row[6]), row[7]))
            for row in limiters
        ],
        noted=frozenset(noted),
        of_queues=of_queues,
        paused=frozenset(row[0] for row in fetch(connection, PAUSED, (now,))),
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
    now = clock()
    limiters = [limiter.id for limiter in locked.limiters]
    change(connection, FORGET, (json.dumps([*limiters, *(row.id for row in partitions)]),))
    noted = [id for id in limiters if id in locked.noted]
    freed = [
        _partition(row)
        for id in noted
        for lane in fetch(connection, WAITING_LANES, {"limiter": id})
        for row in fetch(connection, WAITING, (id, *lane, size))
    ]
    asked = {row.id: row for row in (*partitions, *freed)}
    parameters = {"unknown": json.dumps(list(unknown)), "now": stored(now), "want": want}
    tasks: dict[str, list[ReadyTask]] = {}
    for row in asked.values():
        statement = TASKS_OF_QUEUE if row.limits is None else TASKS
        own = {**parameters, "id": row.id, "queue_name": row.queue_name}
        found = fetch(connection, statement, own)
        if row.holder is not None:
            found += fetch(connection, HOLDER, {**own, "holder": row.holder})
        if found:
            tasks[row.id] = [ReadyTask(id, row.id, *columns) for id, *columns in found]
    lanes = {
        (row.queue_name, row.lane) for row in partitions if row.limits and "tenant" in row.limits
    }
    least = [(*lane, *row) for lane in lanes for row in fetch(connection, LEAST, lane)]
    for id in limiters:
        for lane in lanes:
            found = fetch(connection, WAITING, (id, *lane, 1))
            least += [(*lane, _partition(row).rank) for row in found]
    return Counted(
        now=now,
        running=dict(fetch(connection, RUNNING, (json.dumps(limiters),))),
        freed=freed,
        tasks=tasks,
        holders={
            id: Holder(status, bool(halts))
            for id, status, halts in fetch(connection, HOLDERS, (json.dumps(list(asked)),))
        },
        floors=least_by_lane(least),
        skipped=(),
        bounds={},  # Nobody has changed them since they were read.
    )


def take_limited(
    connection: BaseDatabaseWrapper,
    taking: Taking,
    counted: Counted,
    *,
    worker: str,
    lease_duration: timedelta,
) -> list[Claimed]:
    moment, limiters = counted.now, dict(taking.tasks)
    now = stored(moment)
    picked: list[tuple[Any, ...]] = []
    if taking.tasks:
        found = fetch(connection, PICK, {"ids": json.dumps(list(limiters)), "now": now})
        by_id = {row[0]: row for row in found}
        picked = [by_id[id] for id in limiters if id in by_id]
    claimed: list[Claimed] = []
    if picked:
        leases = [
            (
                row[0], row[2] + 1, bool(limiters[row[0]]),
                stored(moment + _duration(row[10], lease_duration)),
            )
            for row in picked
        ]  # fmt: skip
        with connection.cursor() as cursor:
            cursor.execute(CLAIM, (json.dumps([row[0] for row in picked]),))
            cursor.execute(LEASES, (worker, now, rows(leases)))
            # Under the write lock AUTOINCREMENT gives ids without gaps, in the order of the rows.
            first_id = cursor.lastrowid - len(leases) + 1
        claimed = [
            Claimed._make((lease_id, dashed(row[0]), row[1], row[2] + 1, *row[3:], True))
            for lease_id, row in enumerate(picked, first_id)
        ]
        places = [
            (limiter, lease_id)
            for lease_id, row in enumerate(picked, first_id)
            for limiter in limiters[row[0]]
        ]
        change(connection, SLOTS, (rows(places),))
    for move in taking.moves:
        _move(connection, move, now)
    for id, starts in taking.starts.items():
        change(connection, START, (json.dumps(starts), now, id))
    if taking.again:
        change(connection, NOTE, (json.dumps(taking.again),))
    return claimed


def reopen_partitions(
    connection: BaseDatabaseWrapper, before: Sequence[PartitionRow], *, limiters: Sequence[str]
) -> None:
    change(connection, NOTE, (json.dumps(list(limiters)),))
    for row in before:
        change(connection, REOPEN, (row.holder, row.id))


def _move(connection: BaseDatabaseWrapper, move: Move, now: str | None) -> None:
    ((is_of_queue,),) = fetch(connection, OF_QUEUE, (move.id,))
    heads = fetch(connection, HEAD, (move.id,))
    state, waits_for, opens_at = move.state, move.waits_for, move.opens_at
    priority, run_after, rank = heads[0] if heads else (None, None, None)
    if not heads and not is_of_queue and state != "halted":
        state, waits_for, opens_at = "empty", None, None
    if move.rank is not None:
        priority, rank = 0, move.rank
    due = None if opens_at is None else stored(datetime.fromtimestamp(opens_at, UTC))
    changed_at = None if move.stays and state != "empty" else now
    values = state, waits_for, due, priority, run_after, rank, move.holder, changed_at, move.id
    change(connection, MOVE, values)


def _duration(seconds: float | None, usual: timedelta) -> timedelta:
    return usual if seconds is None else timedelta(seconds=seconds)


def _partition(row: Sequence[Any]) -> PartitionRow:
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
