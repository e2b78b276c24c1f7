"""Wedged attempts: they have run far longer than similar ones, without output or progress."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.states import LeaseStatus
from taskqueue.engine.connections import database_alias
from taskqueue.engine.dialect import as_uuid, execute, select
from taskqueue.engine.statement import Fact, Statement
from taskqueue.models import Lease

logger = logging.getLogger("taskqueue.worker")

LEAST = timedelta(minutes=10)
FACTOR = 10.0
SHARE = 0.95
# The number of newest attempts from which usual run times are computed.
SAMPLE = 2000
# A name with fewer successes among them has no usual run time.
ENOUGH = 20

HAS_RUNNING = Fact.of("EXISTS (SELECT 1 FROM taskqueue_lease WHERE status = 'running')")
# Locks nothing. The index of running leases bounds it; log lines are read only for the few quiet
# ones.
QUIET = Statement(
    postgresql="""
        SELECT
            lease.id, lease.task_id::text, task.name, lease.worker_id, lease.attempt,
            EXTRACT(epoch FROM clock.now - GREATEST(
                lease.started_at, lease.progressed_at, line.logged_at
            ))::float8,
            EXTRACT(epoch FROM clock.now - lease.wedged_at)::float8
        FROM taskqueue_lease AS lease
        CROSS JOIN (SELECT clock_timestamp() AS now) AS clock
        JOIN taskqueue_task AS task ON task.id = lease.task_id
        CROSS JOIN LATERAL (
            SELECT max(logged_at) AS logged_at
            FROM taskqueue_tasklog
            WHERE task_id = lease.task_id AND attempt = lease.attempt
        ) AS line
        WHERE lease.status = 'running'
            AND (
                lease.wedged_at IS NOT NULL
                OR GREATEST(lease.started_at, lease.progressed_at) < clock.now - %(least)s::interval
            )
            AND (
                lease.wedged_at IS NOT NULL
                OR line.logged_at IS NULL
                OR line.logged_at < clock.now - %(least)s::interval
            )
        ORDER BY lease.id
    """,
    sqlite="""
        WITH quiet AS MATERIALIZED (
            SELECT
                id, task_id, worker_id, attempt, wedged_at,
                COALESCE(progressed_at, started_at) AS alive_at,
                (
                    SELECT max(logged_at)
                    FROM taskqueue_tasklog AS line
                    WHERE line.task_id = lease.task_id AND line.attempt = lease.attempt
                ) AS logged_at
            FROM taskqueue_lease AS lease
            WHERE status = 'running'
                AND (
                    wedged_at IS NOT NULL
                    OR julianday(%(now)s) - julianday(COALESCE(progressed_at, started_at))
                        >= %(least)s / 86400000000.0
                )
        )
        SELECT
            quiet.id, quiet.task_id, task.name, quiet.worker_id, quiet.attempt,
            (julianday(%(now)s) - julianday(
                max(quiet.alive_at, COALESCE(quiet.logged_at, quiet.alive_at))
            )) * 86400.0,
            (julianday(%(now)s) - julianday(quiet.wedged_at)) * 86400.0
        FROM quiet
        CROSS JOIN taskqueue_task AS task
        WHERE task.id = quiet.task_id
            AND (
                quiet.wedged_at IS NOT NULL
                OR quiet.logged_at IS NULL
                OR julianday(%(now)s) - julianday(quiet.logged_at) >= %(least)s / 86400000000.0
            )
        ORDER BY quiet.id
    """,
)
# Locks nothing. The newest leases, by their key; OFFSET keeps the planner from joining the whole
# table of tasks to them.
RECENT_RUNS = Statement(
    postgresql="""
        WITH newest AS MATERIALIZED (
            SELECT task_id, status, started_at, finished_at
            FROM taskqueue_lease
            ORDER BY id DESC
            LIMIT %(sample)s
        )
        SELECT task.name, EXTRACT(epoch FROM newest.finished_at - newest.started_at)::float8
        FROM newest
        CROSS JOIN LATERAL (
            SELECT name FROM taskqueue_task WHERE id = newest.task_id OFFSET 0
        ) AS task
        WHERE newest.status = 'succeeded'
            AND newest.started_at IS NOT NULL
            AND task.name = ANY(%(names)s)
    """,
    sqlite="""
        SELECT task.name, (julianday(newest.finished_at) - julianday(newest.started_at)) * 86400.0
        FROM (
            SELECT task_id, status, started_at, finished_at
            FROM taskqueue_lease
            ORDER BY id DESC
            LIMIT %(sample)s
        ) AS newest
        CROSS JOIN taskqueue_task AS task
        WHERE task.id = newest.task_id
            AND newest.status = 'succeeded'
            AND newest.started_at IS NOT NULL
            AND task.name IN (SELECT value FROM json_each(%(names)s))
    """,
)
# Locks: one lease.
SET_WEDGED = Statement.of("""
    UPDATE taskqueue_lease
    SET wedged_at = {now}
    WHERE id = %(lease)s AND status = 'running' AND wedged_at IS NULL
""")
CLEAR_WEDGED = Statement.of("""
    UPDATE taskqueue_lease
    SET wedged_at = NULL
    WHERE id = %(lease)s AND status = 'running' AND wedged_at IS NOT NULL
""")


class Quiet(NamedTuple):
    """A running attempt that has given no sign of life for a while."""

    lease_id: int
    task_id: str
    name: str
    worker: str
    attempt: int
    # Seconds since its last sign of life.
    seconds: float
    # Seconds since it was marked as wedged; None if it is not marked.
    marked_for: float | None


def mark_wedged(
    connection: BaseDatabaseWrapper,
    *,
    least: timedelta = LEAST,
    factor: float = FACTOR,
    enough: int = ENOUGH,
    sample: int = SAMPLE,
) -> int:
    """Mark the running attempts that have been quiet for too long. Return how many there were.

    Too long is at least `least`, and at least `factor` times the p95 of the name's run times.
    Progress and log lines are signs of life; a later one clears the mark.
    """
    quiet = [
        Quiet(row[0], str(as_uuid(row[1])), *row[2:])
        for row in select(connection, QUIET, least=least)
    ]
    for attempt in quiet:
        if attempt.marked_for is not None and attempt.seconds < attempt.marked_for:
            execute(connection, CLEAR_WEDGED, lease=attempt.lease_id)
    suspects = [attempt for attempt in quiet if attempt.marked_for is None]
    if not suspects:
        return 0
    names = sorted({attempt.name for attempt in suspects})
    usual = _usual(select(connection, RECENT_RUNS, names=names, sample=sample), enough)
    marked = 0
    for attempt in suspects:
        seconds = usual.get(attempt.name)
        if seconds is None or attempt.seconds <= factor * seconds:
            continue
        if execute(connection, SET_WEDGED, lease=attempt.lease_id):
            marked += 1
            logger.warning(
                "Attempt seems wedged task=%s id=%s attempt=%s worker=%s"
                " quiet_seconds=%.0f usual_seconds=%.3f",
                attempt.name, attempt.task_id, attempt.attempt, attempt.worker, attempt.seconds,
                seconds,
            )  # fmt: skip
    return marked


def _usual(runs: Iterable[tuple[Any, ...]], enough: int) -> dict[str, float]:
    """Return the run time p95 of each name, by the nearest rank."""
    durations: defaultdict[str, list[float]] = defaultdict(list)
    for name, seconds in runs:
        durations[name].append(seconds)
    return {
        name: sorted(times)[math.ceil(SHARE * len(times)) - 1]
        for name, times in durations.items()
        if len(times) >= enough
    }


def wedged() -> QuerySet[Lease]:
    """Return the attempts that are marked, with their tasks, the longest marked first."""
    return (
        Lease.objects.using(database_alias())
        .filter(status=LeaseStatus.RUNNING.value, wedged_at__isnull=False)
        .select_related("task")
        .order_by("wedged_at")
    )
