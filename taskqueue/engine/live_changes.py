"""Changes that affect a running attempt: the workers of its task, and its ping interval."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.engine.dialect import select
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.sessions import is_postgresql
from taskqueue.engine.statement import Statement, change
from taskqueue.engine.tally import Tally

# Locks: the table of tasks, in the mode in which an excluded lease is recorded afterwards. A ping
# must not wait for a migration or for an index that somebody builds, because its leases would run
# out meanwhile.
LOCK_TABLE = "LOCK TABLE taskqueue_task IN ROW EXCLUSIVE MODE NOWAIT"
LIVE_TERMS = Statement(
    postgresql="""
        SELECT lease.id, task.worker_names::text, EXTRACT(epoch FROM task.ping_interval)::float8
        FROM unnest(%(leases)s::bigint[]) AS held (lease_id)
        CROSS JOIN LATERAL (
            SELECT id, task_id
            FROM taskqueue_lease
            WHERE id = held.lease_id AND finished_at IS NULL
            LIMIT 1
        ) AS lease
        CROSS JOIN LATERAL (
            SELECT worker_names, ping_interval
            FROM taskqueue_task
            WHERE id = lease.task_id AND (route = 1 OR ping_interval IS NOT NULL)
            LIMIT 1
        ) AS task
    """,
    sqlite="""
        SELECT lease.id, task.worker_names, task.ping_interval / 1000000.0
        FROM taskqueue_lease AS lease
        JOIN taskqueue_task AS task ON task.id = lease.task_id
        WHERE lease.id IN (SELECT value FROM json_each(%(leases)s))
            AND lease.status = 'running'
            AND (task.route = 1 OR task.ping_interval IS NOT NULL)
    """,
)
EXCLUDED = "The task's worker_names were changed and no longer include this worker."


class LiveChanges(NamedTuple):
    """The changes that a ping has found."""

    # Leases that were ended because their worker may no longer run the task.
    ended: frozenset[int]
    # The ping interval of each lease's task; None for the interval of the settings.
    ping_seconds: dict[int, float | None]


def apply_live_changes(
    connection: BaseDatabaseWrapper,
    *,
    worker: str,
    lease_ids: Sequence[int],
    policy: EndPolicy,
    tally: Tally,
) -> LiveChanges:
    """Read the options of a worker's leases, and end those that exclude the worker, uncounted."""
    if is_postgresql(connection):
        change(connection, LOCK_TABLE)
    rows = select(connection, LIVE_TERMS, leases=list(lease_ids))
    excluded = [
        Outcome(lease_id, OutcomeKind.RETURNED, 0.0, error_message=EXCLUDED)
        for lease_id, names, _ in rows
        if names is not None and worker not in json.loads(names)
    ]
    ended = record(connection, excluded, policy=policy, tally=tally) if excluded else {}
    return LiveChanges(frozenset(ended), {lease_id: seconds for lease_id, _, seconds in rows})
