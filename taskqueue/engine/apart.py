"""Tasks that not every worker may take: those for several workers, for named ones, for all.

They have an index and a claim of their own, so that 50,000 of them which wait for an absent worker
cost the others nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, F, Q, Value, When

from taskqueue.core.states import TaskStatus
from taskqueue.engine.broadcast import seat_broadcasts
from taskqueue.engine.connections import installed
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.rows import Candidate, Claimed
from taskqueue.engine.statement import Fact
from taskqueue.models import Task

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
"""Whether a task waits that not every worker may take, but perhaps this one."""


def queues_apart(connection: BaseDatabaseWrapper, *, worker: str) -> list[str]:
    """The queues where a task waits that this worker might take."""
    return dialect_for(connection).apart_queues(connection, worker=worker)


def claim_apart(
    connection: BaseDatabaseWrapper,
    *,
    worker: str,
    queue_names: Sequence[str],
    unknown: Sequence[str],
    limit: int,
    lease_duration: timedelta,
) -> list[Claimed]:
    """Lease tasks that this worker may take, but none before a better ordinary one of its queue.

    Of equal priority, one that names this worker goes first; any other goes by its time. The
    caller's transaction holds the locks.
    """
    wording = dialect_for(connection)
    with installed(connection):
        seat_broadcasts(connection, queue_names, worker=worker)
        candidates = wording.candidates(
            connection, worker=worker, queue_names=queue_names, unknown=unknown, limit=limit
        )
        best = {
            name: wording.best_ordinary(connection, queue_name=name, unknown=unknown)
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


def _goes_first(candidate: Candidate, best: tuple[int, float] | None) -> bool:
    if best is None or candidate.priority != best[0]:
        return best is None or candidate.priority > best[0]
    return candidate.is_named or candidate.run_after <= best[1]


def _lease(
    connection: BaseDatabaseWrapper, candidate: Candidate, worker: str, lease_duration: timedelta
) -> Claimed:
    """Take one place of a task that is locked."""
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
