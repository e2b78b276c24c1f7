"""Taking tasks under limits on SQLite, and writing the new state of partitions and limiters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.limit_rows import Counted, Move, PartitionRow, Taking
from taskqueue.engine.rows import Claimed
from taskqueue.engine.sqlite.claim import CLAIM, CLAIMED
from taskqueue.engine.sqlite.values import TASKS_BY_ID, dashed, rows, stored
from taskqueue.engine.statement import change, fetch

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
    elif not move.is_news:
        return
    if move.rank is not None:
        priority, rank = 0, move.rank
    due = None if opens_at is None else stored(datetime.fromtimestamp(opens_at, UTC))
    changed_at = None if move.stays and state != "empty" else now
    values = state, waits_for, due, priority, run_after, rank, move.holder, changed_at, move.id
    change(connection, MOVE, values)


def _duration(seconds: float | None, usual: timedelta) -> timedelta:
    return usual if seconds is None else timedelta(seconds=seconds)
