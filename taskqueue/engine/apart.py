"""Tasks that not every worker may take: for several workers, for named workers, and for all.

They have a separate index and claim, so that other tasks are not delayed, even if 50,000 of these
wait for an absent worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, F, Q, Value, When

from taskqueue.core.states import TaskStatus
from taskqueue.engine.broadcast import seat_broadcasts
from taskqueue.engine.connections import installed
from taskqueue.engine.dialect import dialect_for, select
from taskqueue.engine.limits.lanes import OPEN_LANES_POSTGRESQL, OPEN_LANES_SQLITE
from taskqueue.engine.rows import MOST_LOOKED_AT, Candidate, Claimed
from taskqueue.engine.sessions import KEEPS_PLAN, is_postgresql, kept_plan
from taskqueue.engine.statement import Fact, Statement
from taskqueue.models import Task

# Whether a task waits that this worker may take, but not every worker may.
HAS_APART = Fact.of("""
    EXISTS (
        SELECT 1
        FROM taskqueue_task
        WHERE route = 1
            AND status IN ('ready', 'running')
            AND pinned_to IN ('', (SELECT name FROM taskqueue_worker WHERE id = %(worker)s))
            AND (open_slots > 0 OR (broadcast AND workers = 0))
            AND (status = 'ready' OR workers > 1 OR broadcast)
    )
""")

# A loose scan of the index: one probe for each queue, however many tasks wait there. The same
# statement finds the lanes with open partitions.
QUEUES = Statement(
    postgresql=f"""
        WITH RECURSIVE {OPEN_LANES_POSTGRESQL}, lane (pin, queue_name) AS (
            SELECT
                pin.name,
                (
                    SELECT queue_name
                    FROM taskqueue_task
                    WHERE route = 1 AND status IN ('ready', 'running') AND pinned_to = pin.name
                    ORDER BY queue_name
                    LIMIT 1
                )
            FROM unnest(ARRAY['', %(worker)s::text]) AS pin (name)
            UNION ALL
            SELECT
                lane.pin,
                (
                    SELECT task.queue_name
                    FROM taskqueue_task AS task
                    WHERE task.route = 1
                        AND task.status IN ('ready', 'running')
                        AND task.pinned_to = lane.pin
                        AND task.queue_name > lane.queue_name
                    ORDER BY task.queue_name
                    LIMIT 1
                )
            FROM lane
            WHERE lane.queue_name IS NOT NULL
        )
        SELECT DISTINCT queue_name, NULL AS lane, NULL::float8 AS opens_in
        FROM lane
        WHERE queue_name IS NOT NULL
        UNION ALL
        SELECT queue_name, lane, NULL FROM open_lanes WHERE {KEEPS_PLAN}
        UNION ALL
        SELECT NULL, NULL, EXTRACT(epoch FROM min(opens_at) - statement_timestamp())::float8
        FROM taskqueue_partition
        WHERE opens_at > statement_timestamp()
    """,  # noqa: S608  (of constants)
    sqlite=f"""
        WITH RECURSIVE {OPEN_LANES_SQLITE}, lane (pin, queue_name) AS (
            SELECT
                pin.value,
                (
                    SELECT min(queue_name)
                    FROM taskqueue_task
                    WHERE route = 1
                        AND status IN ('ready', 'running') AND pinned_to = pin.value
                )
            FROM json_each(json_array('', %(worker)s)) AS pin
            UNION ALL
            SELECT
                lane.pin,
                (
                    SELECT min(queue_name)
                    FROM taskqueue_task
                    WHERE route = 1
                        AND status IN ('ready', 'running')
                        AND pinned_to = lane.pin
                        AND queue_name > lane.queue_name
                )
            FROM lane
            WHERE lane.queue_name IS NOT NULL
        )
        SELECT DISTINCT queue_name, NULL AS lane, NULL AS opens_in
        FROM lane
        WHERE queue_name IS NOT NULL
        UNION ALL
        SELECT queue_name, lane, NULL FROM open_lanes
        UNION ALL
        SELECT NULL, NULL, (julianday(min(opens_at)) - julianday(%(now)s)) * 86400.0
        FROM taskqueue_partition
        WHERE opens_at > %(now)s
    """,  # noqa: S608  (of constants)
)
# The best of the first ordinary tasks, which any worker of the queue may take.
BEST = Statement(
    postgresql=f"""
        SELECT priority, EXTRACT(epoch FROM run_after)::float8
        FROM (
            SELECT id, name, priority, run_after
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 0 AND queue_name = %(queue_name)s
            ORDER BY priority DESC, run_after, id
            LIMIT {MOST_LOOKED_AT}
        ) AS first
        WHERE name <> ALL (%(unknown)s::text[])
            AND name <> ALL (ARRAY(
                SELECT name::text
                FROM taskqueue_pause
                WHERE paused_until IS NULL OR paused_until > clock_timestamp()
            ))
        ORDER BY priority DESC, run_after, id
        LIMIT 1
    """,  # noqa: S608  (of constants)
    sqlite=f"""
        SELECT priority, (julianday(run_after) - 2440587.5) * 86400.0
        FROM (
            SELECT id, name, priority, run_after
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 0 AND queue_name = %(queue_name)s
            ORDER BY priority DESC, run_after, id
            LIMIT {MOST_LOOKED_AT}
        ) AS first
        WHERE name NOT IN (SELECT value FROM json_each(%(unknown)s))
            AND name NOT IN (
                SELECT name
                FROM taskqueue_pause
                WHERE paused_until IS NULL OR paused_until > %(now)s
            )
        ORDER BY priority DESC, run_after, id
        LIMIT 1
    """,  # noqa: S608  (of constants)
)
# The last of the first tasks, if there are that many: no later task is better.
LAST = Statement(
    postgresql=f"""
        SELECT priority, EXTRACT(epoch FROM run_after)::float8
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0 AND queue_name = %(queue_name)s
        ORDER BY priority DESC, run_after, id
        LIMIT 1 OFFSET {MOST_LOOKED_AT - 1}
    """,  # noqa: S608  (of constants)
    sqlite=f"""
        SELECT priority, (julianday(run_after) - 2440587.5) * 86400.0
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0 AND queue_name = %(queue_name)s
        ORDER BY priority DESC, run_after, id
        LIMIT 1 OFFSET {MOST_LOOKED_AT - 1}
    """,  # noqa: S608  (of constants)
)


class Look(NamedTuple):
    """Where tasks wait that not every worker may take, or that may not be taken at any time."""

    queues: list[str]
    # The open lanes of `engine.limits`, and the seconds until the next token.
    lanes: set[tuple[str, str]]
    opens_in: float | None


def look_apart(connection: BaseDatabaseWrapper, *, worker: str) -> Look:
    """Find the queues and lanes in which a task waits that this worker might take."""
    if is_postgresql(connection):
        with kept_plan(connection) as series:
            rows = select(connection, QUEUES, worker=worker, series=series)
    else:
        rows = select(connection, QUEUES, worker=worker)
    return Look(
        queues=[name for name, lane, _ in rows if lane is None and name is not None],
        lanes={(name, lane) for name, lane, _ in rows if lane is not None},
        opens_in=next((seconds for *_, seconds in rows if seconds is not None), None),
    )


def claim_apart(
    connection: BaseDatabaseWrapper,
    *,
    worker: str,
    queue_names: Sequence[str],
    unknown: Sequence[str],
    limit: int,
    lease_duration: timedelta,
) -> list[Claimed]:
    """Lease tasks that this worker may take, but none before a better ordinary task of its queue.

    Among tasks of equal priority, those that name this worker go first, and the others are ordered
    by time. The caller's transaction holds the locks.
    """
    dialect = dialect_for(connection)
    with installed(connection):
        seat_broadcasts(connection, queue_names, worker=worker)
        candidates = dialect.candidates(
            connection, worker=worker, queue_names=queue_names, unknown=unknown, limit=limit
        )
        best = {
            name: best_ordinary(connection, name, unknown)
            for name in {candidate.task.queue_name for candidate in candidates}
        }
        chosen = [
            candidate
            for candidate in candidates
            if _goes_first(candidate, best[candidate.task.queue_name])
        ]
        return [
            _lease(connection, candidate, worker, lease_duration) for candidate in chosen[:limit]
        ]


def best_ordinary(
    connection: BaseDatabaseWrapper, queue_name: str, unknown: Sequence[str]
) -> tuple[int, float] | None:
    """Return priority and time of the next ordinary task of a queue, or values that are better."""
    rows = select(connection, BEST, queue_name=queue_name, unknown=list(unknown))
    if not rows:
        rows = select(connection, LAST, queue_name=queue_name)
    return (rows[0][0], rows[0][1]) if rows else None


def _goes_first(candidate: Candidate, best: tuple[int, float] | None) -> bool:
    if best is None or candidate.priority != best[0]:
        return best is None or candidate.priority > best[0]
    return candidate.is_named or candidate.run_after <= best[1]


def _lease(
    connection: BaseDatabaseWrapper, candidate: Candidate, worker: str, lease_duration: timedelta
) -> Claimed:
    """Lease a locked task to one worker."""
    task = candidate.task._replace(attempt=candidate.task.attempt + 1)
    slots = {"open_slots": F("open_slots") - 1, "running_leases": F("running_leases") + 1}
    Task.objects.using(connection.alias).filter(id=task.task_id).update(
        status=TaskStatus.RUNNING,
        attempt=task.attempt,
        holds_unique_key=Case(
            When(Q(unique_for="started"), then=Value(False)), default=F("holds_unique_key")
        ),
        **(slots if candidate.is_shared else {}),
    )
    if task.lease_seconds is not None:
        lease_duration = timedelta(seconds=task.lease_seconds)
    lease_id = dialect_for(connection).insert_lease(
        connection,
        task_id=task.task_id,
        worker=worker,
        attempt=task.attempt,
        is_shared=candidate.is_shared,
        duration=lease_duration,
    )
    return task._replace(lease_id=lease_id)
