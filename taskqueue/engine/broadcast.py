"""Broadcasts: each worker that serves the queue when the task is first seen ready gets a part."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q

from taskqueue.core.retries import class_path
from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.engine.connections import installed, transaction
from taskqueue.engine.dialect import as_uuid, dialect_for, select, select_ids
from taskqueue.engine.ends import announce
from taskqueue.engine.multi_worker_task import NEVER, MultiWorkerTask, lock_tasks
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.statement import Statement
from taskqueue.engine.tally import Tally
from taskqueue.exceptions import AttemptLost
from taskqueue.models import Lease, Task, Worker
from taskqueue.models.worker import WorkerStatus

BATCH = 100
GONE = "The worker ended before it ran its part."
# Locks: broadcasts by id, skipping those for which another worker is making parts.
UNSEATED = Statement(
    postgresql="""
        SELECT id::text, queue_name, name
        FROM taskqueue_task
        WHERE route = 1
            AND status IN ('ready', 'running')
            AND pinned_to = ''
            AND status = 'ready'
            AND broadcast
            AND workers = 0
            AND queue_name = ANY (%(queues)s::text[])
            AND queue_name <> ALL (ARRAY(
                SELECT name
                FROM taskqueue_queue
                WHERE paused_at IS NOT NULL
                    AND (paused_until IS NULL OR paused_until > clock_timestamp())
            ))
        ORDER BY id
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    """,
    sqlite="""
        SELECT id, queue_name, name
        FROM taskqueue_task
        WHERE route = 1
            AND status IN ('ready', 'running')
            AND pinned_to = ''
            AND status = 'ready'
            AND broadcast
            AND workers = 0
            AND queue_name IN (SELECT value FROM json_each(%(queues)s))
            AND queue_name NOT IN (
                SELECT name
                FROM taskqueue_queue
                WHERE paused_at IS NOT NULL AND (paused_until IS NULL OR paused_until > %(now)s)
            )
        ORDER BY id
        LIMIT %(limit)s
    """,
)
# Locks nothing. Materialized, because in the order of ids it would pass over all finished ones.
WAITING = Statement.of("""
    WITH waiting AS MATERIALIZED (
        SELECT id
        FROM taskqueue_task
        WHERE route = 1 AND status IN ('ready', 'running') AND broadcast AND open_slots > 0
    )
    SELECT id FROM waiting WHERE id > %(after)s ORDER BY id LIMIT %(limit)s
""")


def seat_broadcasts(
    connection: BaseDatabaseWrapper, queue_names: Sequence[str], *, worker: str
) -> None:
    """Create the parts of new broadcasts in these queues, for every worker that can run them now.

    A broadcast that no worker can run waits for the first one that can.
    """
    rows = select(connection, UNSEATED, queues=list(queue_names), limit=BATCH)
    workers = _alive(connection, seating=worker) if rows else []
    names_of = {
        (queue_name, name): sorted(
            each.name
            for each in workers
            if (_serves(each, queue_name) or each.name == worker) and not _excludes(each, name)
        )
        for queue_name, name in {(queue_name, name) for _, queue_name, name in rows}
    }
    for task_id, queue_name, name in rows:
        if names := names_of[queue_name, name]:
            Task.objects.using(connection.alias).filter(id=as_uuid(task_id)).update(
                workers=len(names),
                open_slots=len(names),
                worker_names=names,
                pinned_to=names[0] if len(names) == 1 else "",
            )


def _alive(connection: BaseDatabaseWrapper, *, seating: str) -> list[Worker]:
    """Return the running workers, and the one that creates the parts."""
    now = dialect_for(connection).now(connection)
    rows = Worker.objects.using(connection.alias).only(
        "name", "queues", "seen_at", "lease_seconds", "definition_slots", "status"
    )
    workers = {
        each.name: each for each in rows.filter(Q(status=WorkerStatus.RUNNING) | Q(name=seating))
    }
    own = workers.pop(seating, None) or Worker(name=seating)
    return [own, *(each for each in workers.values() if not each.is_silent(now))]


def _serves(worker: Worker, queue_name: str) -> bool:
    return not worker.queues or queue_name in worker.queues


def _excludes(worker: Worker, name: str) -> bool:
    """Return whether a worker has no slots for a definition."""
    return bool(worker.definition_slots.get(name) == 0)


def release_gone(
    connection: BaseDatabaseWrapper, *, policy: EndPolicy, after: UUID | None = None
) -> tuple[int, UUID | None]:
    """Record the parts of workers that are gone as lost, and stop waiting for them.

    Checks the next broadcasts after `after`. Return how many parts were lost, and where to
    continue. A worker is gone when it has been absent for two leases: a worker that restarts under
    its name takes up its part again. A worker also counts as gone if it was made quiet, came back
    for other queues, or has no slots for the definition any more.
    """
    dialect = dialect_for(connection)
    with installed(connection):
        now = dialect.now(connection)
        ids = select_ids(connection, WAITING, after=after or UUID(int=0), limit=BATCH)
        tasks = Task.objects.using(connection.alias).filter(id__in=ids).order_by("id")
        waiting_for_gone = [
            str(task.id)
            for task in tasks.only("id", "queue_name", "name", "worker_names")
            if _gone(connection, task, now)
        ]
    released = 0
    for task_id in waiting_for_gone:
        with transaction(connection), installed(connection):
            lock_tasks(connection, [task_id])
            released += _release(connection, task_id, policy)
    return released, UUID(ids[-1]) if len(ids) == BATCH else None


def _release(connection: BaseDatabaseWrapper, task_id: str, policy: EndPolicy) -> int:
    now = dialect_for(connection).now(connection)
    task = Task.objects.using(connection.alias).filter(id=task_id, open_slots__gt=0).first()
    if task is None or task.status not in (TaskStatus.READY, TaskStatus.RUNNING):
        return 0
    shared = MultiWorkerTask(connection, task, now=now, policy=policy)
    latest = {
        lease.worker_id: lease
        for lease in shared.leases.filter(is_shared=True).order_by("attempt")
        if lease.attempt > task.attempts_before_retry or lease.status == LeaseStatus.SUCCEEDED
    }
    released: list[str] = []
    absent = 0
    names = task.worker_names or []
    for name in _gone(connection, task, now):
        lease = latest.get(name)
        if lease is not None and not _is_open(lease):
            continue
        if lease is None:
            absent += 1
            task.attempt += 1
            _record_absence(connection, task, name, now)
        else:
            shared.leases.filter(id=lease.id).update(retry_at=NEVER)
        task.workers -= 1
        task.open_slots -= 1
        released.append(name)
    if released:
        # A manual retry does not wait for them either.
        task.worker_names = [name for name in names if name not in released]
        tally = Tally()
        tally.add_lost(task.queue_name, task.name, absent)
        announce(connection, shared.settle(), tally=tally)
    return len(released)


def _is_open(lease: Lease) -> bool:
    """Return whether the part that this lease tried must still be run."""
    over = (LeaseStatus.RUNNING, LeaseStatus.SUCCEEDED)
    return lease.status not in over and lease.retry_at != NEVER


def _gone(connection: BaseDatabaseWrapper, task: Task, now: datetime) -> list[str]:
    names = task.worker_names or []
    rows = Worker.objects.using(connection.alias).filter(name__in=names)
    living = {worker.name for worker in rows if not _is_gone(worker, task, now)}
    return [name for name in names if name not in living]


def _is_gone(worker: Worker, task: Task, now: datetime) -> bool:
    was_there = worker.seen_at
    if not _serves(worker, task.queue_name) or _excludes(worker, task.name):
        was_there = worker.started_at
    elif worker.status == WorkerStatus.QUIET:
        was_there = worker.request_seen_at or worker.seen_at
    return was_there + 2 * timedelta(seconds=worker.lease_seconds) < now


def _record_absence(
    connection: BaseDatabaseWrapper, task: Task, worker: str, now: datetime
) -> None:
    lease_id = dialect_for(connection).insert_lease(
        connection,
        task_id=str(task.id),
        worker=worker,
        attempt=task.attempt,
        is_shared=True,
        duration=timedelta(0),
    )
    Lease.objects.using(connection.alias).filter(id=lease_id).update(
        status=LeaseStatus.LOST,
        finished_at=now,
        retry_at=NEVER,
        error_class=class_path(AttemptLost),
        error_message=GONE,
    )
