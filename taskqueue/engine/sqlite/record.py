"""Recording outcomes on SQLite: fenced by the lease, under one write lock."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from taskqueue.core.outcomes import EFFECTS, Effect, Outcome, Recorded, success_of
from taskqueue.core.states import FINISHED, WAITING, TaskStatus
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.sqlite.values import (
    ago,
    all_ago,
    clock,
    loaded,
    retention_of,
    stored,
)

# CROSS JOIN fixes the order: with old statistics SQLite would read all rows.
HELD_BY_SUCCESSES = """
SELECT
    lease.id, task.id, task.status = 'running',
    task.retention, task.unique_until, task.holds_unique_key, task.unique_for, task.step_id
FROM json_each(%s) AS outcome
CROSS JOIN taskqueue_lease AS lease ON lease.id = outcome.value
CROSS JOIN taskqueue_task AS task ON task.id = lease.task_id
WHERE lease.status = 'running' AND lease.stop_seen_at IS NULL AND NOT lease.is_shared
"""

END_SUCCEEDED = """
UPDATE taskqueue_lease
SET status = 'succeeded', started_at = COALESCE(started_at, %s), finished_at = %s,
    progress = CASE WHEN progress IS NOT NULL THEN 100.0 END
WHERE id = %s
"""

FINISH_SUCCEEDED = """
UPDATE taskqueue_task
SET status = 'succeeded', return_value = %s, started_at = COALESCE(started_at, %s),
    finished_at = %s, prune_after = %s,
    holds_unique_key = holds_unique_key AND unique_for IN ('kept', 'duration')
WHERE id = %s
"""

HELD = """
SELECT
    lease.id, lease.task_id, lease.stop_requested_at IS NOT NULL, lease.stop_reason,
    lease.started_at,
    task.failures, task.max_attempts, task.crashes, task.max_crashes, task.parked_at,
    task.crash_delay, task.retention, task.unique_until, task.holds_unique_key, task.unique_for,
    task.step_id
FROM json_each(%s) AS outcome
CROSS JOIN taskqueue_lease AS lease ON lease.id = outcome.value
CROSS JOIN taskqueue_task AS task ON task.id = lease.task_id
WHERE lease.status = 'running' AND NOT lease.is_shared
"""

END = """
UPDATE taskqueue_lease
SET status = %(status)s, started_at = %(started_at)s,
    finished_at = %(finished_at)s, error_class = %(error_class)s,
    error_message = %(error_message)s, traceback = %(traceback)s
WHERE id = %(lease_id)s
"""

WITHDRAW = "DELETE FROM taskqueue_lease WHERE id = %s"

FINISH = """
UPDATE taskqueue_task
SET status = %(status)s,
    attempt = attempt - %(is_withdrawn)s,
    failures = failures + %(failures)s,
    crashes = crashes + %(crashes)s,
    run_after = COALESCE(%(run_after)s, run_after),
    ready_at = COALESCE(%(ready_at)s, ready_at),
    parked_at = %(parked_at)s,
    started_at = COALESCE(NULLIF(started_at, %(noted_at)s), %(started_at)s),
    error_class = %(error_class)s,
    error_message = %(error_message)s,
    finished_at = %(finished_at)s,
    prune_after = %(prune_after)s,
    holds_unique_key = %(holds_unique_key)s
WHERE id = %(task_id)s AND status = 'running'
"""


class _HeldTask(NamedTuple):
    lease_id: int
    task_id: str
    stopping: bool
    stop_reason: str
    started_at: Any
    failures: int
    max_attempts: int
    crashes: int
    max_crashes: int
    parked_at: Any
    crash_delay: int
    retention: int | None
    unique_until: Any
    holds_unique_key: bool
    unique_for: str
    step_id: int | None


def record_successes(
    connection: BaseDatabaseWrapper,
    outcomes: Sequence[Outcome],
    retention: timedelta | None,
    passing: Collection[int] = (),  # Always empty on SQLite.
) -> dict[int, Recorded]:
    moment = clock()
    kept_until = None if retention is None else stored(moment + retention)
    by_lease = {outcome.lease_id: outcome for outcome in outcomes}
    ended, finished = [], []
    recorded: dict[int, Recorded] = {}
    with connection.cursor() as cursor:
        cursor.execute(HELD_BY_SUCCESSES, (json.dumps(sorted(by_lease)),))
        held = cursor.fetchall()
        outcomes = [by_lease[row[0]] for row in held]
        started = all_ago(moment, [outcome.started for outcome in outcomes])
        finished_at = all_ago(moment, [outcome.ended for outcome in outcomes])
        for row, outcome, *times in zip(held, outcomes, started, finished_at, strict=True):
            lease_id, task_id, is_running, own, _, holds_unique_key, _, step_id = row
            ended.append((*times, lease_id))
            prune_after = kept_until
            if own is not None or holds_unique_key or step_id is not None:
                prune_after = stored(retention_of(*row[3:]).prune_after(moment, retention))
            if is_running:
                finished.append((outcome.return_value, *times, prune_after, task_id))
                recorded[lease_id] = success_of(step_id)
        cursor.executemany(END_SUCCEEDED, ended)
        cursor.executemany(FINISH_SUCCEEDED, finished)
    return recorded


def record_endings(
    connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome], policy: EndPolicy
) -> dict[int, Recorded]:
    moment = clock()
    recorded = {}
    with connection.cursor() as cursor:
        for held, outcome in _held(cursor, HELD, outcomes):
            recorded[held.lease_id] = _end(cursor, held, outcome, policy, moment)
    return recorded


def _held(
    cursor: CursorWrapper, statement: str, outcomes: Sequence[Outcome]
) -> list[tuple[_HeldTask, Outcome]]:
    """Return the tasks and outcomes of leases that still run."""
    by_lease = {outcome.lease_id: outcome for outcome in outcomes}
    cursor.execute(statement, (json.dumps(sorted(by_lease)),))
    return [(held, by_lease[held.lease_id]) for held in map(_HeldTask._make, cursor.fetchall())]


def _end(
    cursor: CursorWrapper, held: _HeldTask, outcome: Outcome, policy: EndPolicy, moment: datetime
) -> Recorded:
    effect = EFFECTS[outcome.kind]
    noted_at = stored(loaded(held.started_at))
    # A body that never began may be noted as running, because its order had been sent.
    started_at = None if outcome.started is None else noted_at or ago(moment, outcome.started)
    message = outcome.error_message or held.stop_reason
    lease_status = effect.lease_status_of(stopping=held.stopping)
    if lease_status is None:
        cursor.execute(WITHDRAW, (held.lease_id,))
    else:
        lease: dict[str, Any] = {
            "lease_id": held.lease_id,
            "status": lease_status,
            "started_at": started_at,
            "finished_at": ago(moment, outcome.ended),
            "error_class": outcome.error_class,
            "error_message": message,
            "traceback": outcome.traceback,
        }
        cursor.execute(END, lease)
    status = _verdict(held, outcome, policy, moment)
    wait = None
    if status in WAITING:
        wait = timedelta(seconds=outcome.delay)
        if effect.counts_as == "crash":
            wait = timedelta(microseconds=held.crash_delay)
    task: dict[str, Any] = {
        "task_id": held.task_id,
        "status": status,
        "is_withdrawn": lease_status is None,
        "failures": effect.counts_as == "failure",
        "crashes": effect.counts_as == "crash",
        "run_after": stored(moment + wait) if wait is not None else None,
        "ready_at": stored(moment) if status == TaskStatus.READY else None,
        "parked_at": _parked_at(held, effect, moment),
        "noted_at": noted_at,
        "started_at": started_at,
        "error_class": "",
        "error_message": "",
        "finished_at": None,
        "prune_after": None,
        "holds_unique_key": held.holds_unique_key,
    }
    if status in FINISHED:
        retention = retention_of(*held[-5:])
        task["error_class"], task["error_message"] = outcome.error_class, message
        task["finished_at"] = stored(moment)
        task["prune_after"] = stored(retention.prune_after(moment, policy.kept_for(status)))
        task["holds_unique_key"] = retention.keeps_key
    cursor.execute(FINISH, task)
    return Recorded(status, lease_status, held.step_id)


def _parked_at(held: _HeldTask, effect: Effect, moment: datetime) -> str | None:
    """Return since when the task has met only workers that do not know its definition."""
    since = stored(loaded(held.parked_at))
    if effect.limited_by == "park_limit":
        return since or stored(moment)
    return since if effect.lease_status_of(stopping=held.stopping) is None else None


def _verdict(held: _HeldTask, outcome: Outcome, policy: EndPolicy, moment: datetime) -> TaskStatus:
    """Return the task's new status, as PostgreSQL's statement decides it."""
    if held.stopping:
        return TaskStatus.CANCELLED
    effect = EFFECTS[outcome.kind]
    parked_at = loaded(held.parked_at) or moment
    is_exhausted = {
        "": False,
        "max_attempts": not outcome.retryable or held.failures + 1 >= held.max_attempts,
        "max_crashes": held.crashes + 1 >= held.max_crashes,
        "park_limit": parked_at <= moment - policy.park_limit,
    }
    return TaskStatus.FAILED if is_exhausted[effect.limited_by] else effect.task_status
