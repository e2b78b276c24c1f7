"""Claim tasks on SQLite, including those that only some workers may take.

The caller holds the write lock, so nothing needs to be skipped, and rows do not change after they
were read. A batch is read by one statement and written by one statement per table, because each
run of a statement costs SQLite tens of microseconds, however much it writes. SQLite uses a partial
index only if a statement repeats the condition of the index word by word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine import apart_conditions
from taskqueue.engine.rows import NO_FLOORS, Candidate, Claimed
from taskqueue.engine.sqlite.values import TASKS_BY_ID, clock, dashed, stored
from taskqueue.engine.statement import fetch

# The definitions that are paused, and '' if everything is.
PAUSES = """(
    SELECT name FROM taskqueue_pause WHERE paused_until IS NULL OR paused_until > %(now)s
)"""

# The fields of `Claimed` between the id of the lease and the last, with their values before the
# claim.
CLAIMED = """
    id, name, attempt, args, kwargs,
    CASE WHEN options = '{{}}' THEN '' ELSE options END,
    CASE WHEN metadata = '{{}}' THEN '' ELSE metadata END,
    {failures}, max_attempts, crashes,
    lease_duration / 1000000.0,
    (julianday(deadline_at) - julianday(%(now)s)) * 86400.0,
    queue_name,
    ping_interval / 1000000.0,
    (julianday(%(now)s) - julianday(ready_at)) * 86400.0"""

# A pick consists of these parts, in this order.
_READY = f"""
SELECT
    {CLAIMED.format(failures="failures")}
FROM taskqueue_task
WHERE status = 'ready'
    AND route = 0
    AND queue_name = %(queue_name)s
"""  # noqa: S608  (of constants)
_AT_PRIORITY = """\
    AND priority = %(priority)s
    AND run_after >= %(floor)s
"""
_IN_ORDER = f"""\
    AND queue_name NOT IN (
        SELECT name
        FROM taskqueue_queue
        WHERE limiter_id IS NOT NULL
            OR paused_at IS NOT NULL AND (paused_until IS NULL OR paused_until > %(now)s)
    )
    AND name NOT IN (SELECT value FROM json_each(%(unknown)s))
    AND name NOT IN {PAUSES}
    AND '' NOT IN {PAUSES}
    AND (expires_at IS NULL OR started_at IS NOT NULL OR expires_at > %(now)s)
    AND (deadline_at IS NULL OR deadline_at > %(now)s)
ORDER BY priority DESC, run_after, id
LIMIT %(size)s
"""  # noqa: S608  (of constants)

PICK = _READY + _IN_ORDER
PICK_AT_PRIORITY = _READY + _AT_PRIORITY + _IN_ORDER

CLAIM = f"""
UPDATE {TASKS_BY_ID}
SET status = 'running',
    attempt = attempt + 1,
    holds_unique_key = holds_unique_key AND unique_for <> 'started'
WHERE id IN (SELECT value FROM json_each(%s)) AND status = 'ready'
"""  # noqa: S608  (of constants)

LEASES = """
INSERT INTO taskqueue_lease (
    task_id, worker_id, attempt, status, is_shared, claimed_at, expires_at
)
SELECT
    json_extract(value, '$[0]'), %s, json_extract(value, '$[1]'), 'running', %s, %s,
    json_extract(value, '$[2]')
FROM json_each(%s)
ORDER BY key
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

    A queue's floor, which excludes tasks that were due before it, applies only with a priority.
    """
    moment = clock()
    now = stored(moment)
    ends_at = stored(moment + lease_duration)
    parameters = {"unknown": json.dumps(list(unknown)), "now": now}
    picked: list[tuple[Any, ...]] = []
    with connection.cursor() as cursor:
        for queue_name, size in quotas:
            own = {**parameters, "queue_name": queue_name, "size": size}
            if priority is None:
                cursor.execute(PICK, own)
            else:
                floor = stored(floors.get(queue_name)) or ""
                cursor.execute(PICK_AT_PRIORITY, {**own, "priority": priority, "floor": floor})
            picked += cursor.fetchall()
        if not picked:
            return []
        leases = []
        for task_id, _, attempt, *_, seconds, _, _, _, _ in picked:
            own_end = ends_at if seconds is None else stored(moment + timedelta(seconds=seconds))
            leases.append((task_id, attempt + 1, own_end))
        cursor.execute(CLAIM, (json.dumps([row[0] for row in picked]),))
        cursor.execute(LEASES, (worker, False, now, json.dumps(leases)))
        # Under the write lock AUTOINCREMENT gives ids without gaps, in the order of the rows.
        first_id = cursor.lastrowid - len(leases) + 1
    return [
        Claimed._make((lease_id, dashed(row[0]), row[1], row[2] + 1, *row[3:], False))
        for lease_id, row in enumerate(picked, first_id)
    ]


def earliest_ready(
    connection: BaseDatabaseWrapper, queue_names: Sequence[str]
) -> dict[str, datetime]:
    return {}


CANDIDATES = f"""
SELECT
    {CLAIMED.format(failures=apart_conditions.OWN_FAILURES)},
    task.priority, (julianday(task.run_after) - 2440587.5) * 86400.0,
    task.worker_names IS NOT NULL,
    task.workers > 1 OR task.broadcast
FROM taskqueue_task AS task
WHERE {apart_conditions.IS_OPEN.format(now="%(now)s")}
    AND task.pinned_to IN ('', %(worker)s)
    AND task.queue_name = %(queue_name)s
    AND task.name NOT IN (SELECT value FROM json_each(%(unknown)s))
    AND task.name NOT IN {PAUSES}
    AND '' NOT IN {PAUSES}
    AND (
        task.worker_names IS NULL
        OR EXISTS (SELECT 1 FROM json_each(task.worker_names) WHERE value = %(worker)s)
    )
    AND NOT EXISTS (
        SELECT 1
        FROM taskqueue_queue AS queue
        WHERE queue.name = task.queue_name
            AND queue.paused_at IS NOT NULL
            AND (queue.paused_until IS NULL OR queue.paused_until > %(now)s)
    )
ORDER BY task.priority DESC, task.worker_names IS NULL, task.run_after, task.id
LIMIT %(limit)s
"""  # noqa: S608  (of constants)


def candidates(
    connection: BaseDatabaseWrapper,
    *,
    worker: str,
    queue_names: Sequence[str],
    unknown: Sequence[str],
    limit: int,
) -> list[Candidate]:
    parameters = {
        "worker": worker, "unknown": json.dumps(list(unknown)), "now": stored(clock()),
        "limit": limit,
    }  # fmt: skip
    found: list[Candidate] = []
    for queue_name in queue_names:
        rows = fetch(connection, CANDIDATES, {**parameters, "queue_name": queue_name})
        found += [Candidate.of((dashed(row[0]), *row[1:])) for row in rows]
    return found


def insert_lease(
    connection: BaseDatabaseWrapper,
    *,
    task_id: str,
    worker: str,
    attempt: int,
    is_shared: bool,
    duration: timedelta,
) -> int:
    now = clock()
    lease = UUID(task_id).hex, attempt, stored(now + duration)
    with connection.cursor() as cursor:
        cursor.execute(LEASES, (worker, is_shared, stored(now), json.dumps([lease])))
        return int(cursor.lastrowid)
