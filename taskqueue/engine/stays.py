"""Retries on the same worker: pinned to it when an attempt ends, released when it is gone.

Such a task is claimed like one for a named worker (`engine.apart`), but has no `worker_names`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.states import PENDING, WAITING
from taskqueue.engine.connections import installed, orm_transaction
from taskqueue.engine.dialect import as_uuid, execute, select
from taskqueue.engine.notify import ANYWHERE, wake
from taskqueue.engine.sessions import take_write_lock
from taskqueue.engine.statement import Fact, Statement
from taskqueue.models import Lease, Stay, Task
from taskqueue.models.task import Route

BATCH = 500
HAS_STAYS = Fact.of("EXISTS (SELECT 1 FROM taskqueue_stay)")
# Pins of tasks that have ended or need not stay any more, and of tasks whose worker is gone or
# takes no tasks. Running tasks are left to the worker that takes them over.
OVER = Statement.of("""
    SELECT stay.task_id, stay.worker_name
    FROM taskqueue_stay AS stay
    LEFT JOIN taskqueue_task AS task ON task.id = stay.task_id
    WHERE task.id IS NULL
        OR task.finished_at IS NOT NULL
        OR task.pinned_to <> stay.worker_name
        OR task.status <> 'running' AND NOT EXISTS (
            SELECT 1
            FROM taskqueue_worker AS worker
            WHERE worker.name = stay.worker_name
                AND worker.status = 'running'
                AND {since worker.seen_at} <= worker.lease_seconds
        )
    LIMIT %(limit)s
""")

KEEP = Statement.of("""
    INSERT INTO taskqueue_stay (task_id, worker_name)
    SELECT id, pinned_to
    FROM taskqueue_task
    WHERE id {in ids uuid} AND route = 1 AND pinned_to = %(worker)s
    ON CONFLICT (task_id) DO UPDATE SET worker_name = EXCLUDED.worker_name
""")


def keep_on_worker(connection: BaseDatabaseWrapper, lease_ids: Collection[int]) -> None:
    """Pin the tasks of ended attempts to the workers of these attempts.

    Only tasks are pinned that wait for another attempt and that any worker might run. The caller's
    transaction holds the locks of the tasks.
    """
    with installed(connection):
        leases = Lease.objects.using(connection.alias).filter(id__in=lease_ids)
        by_worker: defaultdict[str, list[UUID]] = defaultdict(list)
        for task_id, name in leases.values_list("task_id", "worker_id"):
            by_worker[str(name)].append(task_id)
        for worker, task_ids in by_worker.items():
            waiting = _single(connection, task_ids).filter(status__in=sorted(WAITING))
            if waiting.update(route=Route.APART, pinned_to=worker):
                ids = [task_id.hex for task_id in task_ids]
                execute(connection, KEEP, ids=ids, worker=worker)


def release_stays(connection: BaseDatabaseWrapper) -> bool:
    """Let any worker take tasks whose worker is gone. Return whether there may be more.

    Locks: their tasks by id.
    """
    with orm_transaction(connection):
        take_write_lock(connection)
        rows = [(as_uuid(row[0]), str(row[1])) for row in select(connection, OVER, limit=BATCH)]
        by_worker: defaultdict[str, list[UUID]] = defaultdict(list)
        for task_id, worker in sorted(rows):
            by_worker[worker].append(task_id)
        released = 0
        for worker, task_ids in by_worker.items():
            tasks = _single(connection, task_ids).filter(pinned_to=worker)
            free = list(
                tasks.exclude(status="running")
                .order_by("id")
                .select_for_update(skip_locked=True)
                .values_list("id", "status")
            )
            ids = [task_id for task_id, _ in free]
            tasks.filter(id__in=ids).update(route=Route.ORDINARY, pinned_to="")
            released += sum(status in PENDING for _, status in free)
            # Locked tasks are left for the next look.
            left = set(tasks.values_list("id", flat=True))
            over = [task_id for task_id in task_ids if task_id not in left]
            Stay.objects.using(connection.alias).filter(task_id__in=over).delete()
        if released:
            wake(connection, ANYWHERE)
    return len(rows) == BATCH


def _single(connection: BaseDatabaseWrapper, task_ids: Sequence[UUID]) -> QuerySet[Task]:
    """Return those of the tasks that a single worker must run, whichever it is."""
    return Task.objects.using(connection.alias).filter(
        id__in=task_ids,
        route__in=[Route.ORDINARY, Route.APART],
        worker_names__isnull=True,
        workers=1,
        broadcast=False,
    )
