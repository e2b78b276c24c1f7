"""Broadcasts: a part for each worker that lives on the queue when the task is seen ready."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine import shared
from taskqueue.engine.connections import installed, transaction
from taskqueue.engine.limits import Limits
from taskqueue.engine.wording import wording_for
from taskqueue.exceptions import AttemptLost
from taskqueue.models import Lease, Task, Worker
from taskqueue.models.worker import WorkerStatus
from taskqueue.snapshots import class_path
from taskqueue.states import LeaseStatus, TaskStatus

BATCH = 100
GONE = "The worker ended before it ran its part."


def seat_broadcasts(
    connection: BaseDatabaseWrapper, queue_names: Sequence[str], *, worker: str
) -> None:
    """Give each new broadcast of these queues a part for every worker that lives there now."""
    for task_id, queue_name in wording_for(connection).unseated(
        connection, queue_names=queue_names
    ):
        names = sorted({worker, *_names_serving(connection, queue_name)})
        Task.objects.using(connection.alias).filter(id=task_id).update(
            workers=len(names),
            open_slots=len(names),
            worker_names=names,
            pinned_to=names[0] if len(names) == 1 else "",
        )


def _names_serving(connection: BaseDatabaseWrapper, queue_name: str) -> list[str]:
    now = wording_for(connection).now(connection)
    alive = Worker.objects.using(connection.alias).filter(status=WorkerStatus.RUNNING)
    return [
        worker.name
        for worker in alive.only("name", "queues", "seen_at", "lease_seconds")
        if (not worker.queues or queue_name in worker.queues)
        and worker.seen_at + timedelta(seconds=worker.lease_seconds) > now
    ]


def release_gone(connection: BaseDatabaseWrapper, *, limits: Limits) -> int:
    """Record the parts of workers that have ended as lost, and do not wait for them any longer.

    A worker counts as gone when it has not been seen for the time of two leases: one that is
    restarted under its name takes its part up again.
    """
    with installed(connection):
        waiting = Task.objects.using(connection.alias).filter(
            claimed_apart=True,
            broadcast=True,
            open_slots__gt=0,
            status__in=[TaskStatus.READY, TaskStatus.RUNNING],
        )
        ids = [str(task_id) for task_id in waiting.values_list("id", flat=True)[:BATCH]]
    released = 0
    for task_id in ids:
        with transaction(connection), installed(connection):
            wording_for(connection).lock_tasks(connection, [task_id])
            released += _release(connection, task_id, limits)
    return released


def _release(connection: BaseDatabaseWrapper, task_id: str, limits: Limits) -> int:
    now = wording_for(connection).now(connection)
    task = Task.objects.using(connection.alias).filter(id=task_id, open_slots__gt=0).first()
    if task is None or task.status not in (TaskStatus.READY, TaskStatus.RUNNING):
        return 0
    latest = {
        lease.worker_id: lease
        for lease in shared.leases_of(connection, task).order_by("attempt")
        if lease.attempt > task.attempts_before_retry or lease.status == LeaseStatus.SUCCEEDED
    }
    released: list[str] = []
    names = task.worker_names or []
    for name in _gone(connection, names, now):
        lease = latest.get(name)
        if lease is not None and not _is_open(lease):
            continue
        if lease is None:
            task.attempt += 1
            _record_absence(connection, task, name, now)
        else:
            shared.leases_of(connection, task).filter(id=lease.id).update(retry_at=shared.NEVER)
        task.workers -= 1
        task.open_slots -= 1
        released.append(name)
    if released:
        # A manual retry does not wait for them either.
        task.worker_names = [name for name in names if name not in released]
        shared.settle(connection, task, now=now, limits=limits)
    return len(released)


def _is_open(lease: Lease) -> bool:
    """Whether the part that this lease tried is still to be run."""
    over = (LeaseStatus.RUNNING, LeaseStatus.SUCCEEDED)
    return lease.status not in over and lease.retry_at != shared.NEVER


def _gone(connection: BaseDatabaseWrapper, names: Sequence[str], now: datetime) -> list[str]:
    rows = Worker.objects.using(connection.alias).filter(name__in=names)
    living = {worker.name for worker in rows if not _is_gone(worker, now)}
    return [name for name in names if name not in living]


def _is_gone(worker: Worker, now: datetime) -> bool:
    return worker.seen_at + 2 * timedelta(seconds=worker.lease_seconds) < now


def _record_absence(
    connection: BaseDatabaseWrapper, task: Task, worker: str, now: datetime
) -> None:
    lease = Lease(
        task_id=task.id,
        worker_id=worker,
        attempt=task.attempt,
        status=LeaseStatus.LOST,
        is_shared=True,
        claimed_at=now,
        expires_at=now,
        finished_at=now,
        retry_at=shared.NEVER,
        error_class=class_path(AttemptLost),
        error_message=GONE,
    )
    lease.save(using=connection.alias, force_insert=True)
