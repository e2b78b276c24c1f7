"""Counting places and reading tasks of a claim under limits on SQLite."""

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
from taskqueue.engine.rows import MOST_LOOKED_AT
from taskqueue.engine.sqlite.claim import PAUSES
from taskqueue.engine.sqlite.limit_lock import PARTITION, partition_from
from taskqueue.engine.sqlite.values import clock, stored
from taskqueue.engine.statement import change, fetch

WAITING = f"""
SELECT {PARTITION}
FROM taskqueue_partition
WHERE waits_for = %s AND queue_name = %s AND lane = %s
ORDER BY head_priority DESC, rank, id
LIMIT %s
"""  # noqa: S608  (of constants)
# The lanes of partitions that wait for a limiter, by a loose scan of the index.
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
# If there are very many notes, some are left, so that other sessions get the write lock.
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
# The task that holds a sequence up, however many others are before it.
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
# The best of the first ordinary tasks, and the last of them: no later task is better.
RIVAL = f"""
SELECT priority, (julianday(run_after) - 2440587.5) * 86400.0
FROM (
    SELECT id, name, priority, run_after
    FROM taskqueue_task
    WHERE status = 'ready' AND route = 0 AND queue_name = %(queue_name)s
    ORDER BY priority DESC, run_after, id
    LIMIT {MOST_LOOKED_AT}
) AS first
WHERE {_IS_KNOWN}
ORDER BY priority DESC, run_after, id
LIMIT 1
"""  # noqa: S608  (of constants)
LAST_RIVAL = f"""
SELECT priority, (julianday(run_after) - 2440587.5) * 86400.0
FROM taskqueue_task
WHERE status = 'ready' AND route = 0 AND queue_name = %(queue_name)s
ORDER BY priority DESC, run_after, id
LIMIT 1 OFFSET {MOST_LOOKED_AT - 1}
"""  # noqa: S608  (of constants)
LEAST = """
SELECT rank
FROM taskqueue_partition
WHERE state = 'open' AND queue_name = %s AND lane = %s
ORDER BY head_priority DESC, rank, id
LIMIT 1
"""


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
    now = clock()
    limiters = [limiter.id for limiter in locked.limiters]
    noted = [id for id in limiters if id in locked.noted]
    # Notes of other limiters, which were too many to be read, are left: nothing is opened here that
    # waits for those limiters.
    change(connection, FORGET, (json.dumps([*noted, *(row.id for row in partitions)]),))
    freed = [
        partition_from(row)
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
        if row.limits is not None:
            own["want"] = depth
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
            of_lane = fetch(connection, WAITING, (id, *lane, 1))
            least += [(*lane, partition_from(row).rank) for row in of_lane]
    best = {}
    for name in rivals:
        of_queue = {**parameters, "queue_name": name}
        rows = fetch(connection, RIVAL, of_queue) or fetch(connection, LAST_RIVAL, of_queue)
        if rows:
            best[name] = rows[0]
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
        rivals={name: (priority, due) for name, (priority, due) in best.items()},
        bounds={},  # They cannot have changed since they were read.
    )
