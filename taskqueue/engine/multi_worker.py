"""Tasks of several workers: record attempts, admit no further workers, run them again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import EFFECTS, Outcome, Recorded
from taskqueue.core.retries import class_path
from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.engine.connections import installed, transaction
from taskqueue.engine.dialect import dialect_for, select_ids
from taskqueue.engine.ends import announce
from taskqueue.engine.multi_worker_task import MultiWorkerTask, lock_shared, lock_tasks
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.rows import Ended
from taskqueue.engine.statement import Statement
from taskqueue.exceptions import DeadlineExceeded
from taskqueue.models import Lease, Task

BATCH = 100

# Locks nothing: each task is checked again under its lock.
OVERDUE = Statement.of("""
    SELECT id
    FROM taskqueue_task
    WHERE route = 1 AND status IN ('ready', 'running')
        AND status = 'running'
        AND (workers > 1 OR broadcast)
        AND open_slots > 0
        AND deadline_at <= {now}
    LIMIT %(limit)s
""")


def is_shared(task: Task) -> bool:
    """Return whether several workers must run the task."""
    return task.workers > 1 or task.broadcast


def has_all_successes(task: Task) -> bool:
    """Return whether a shared task has nothing left to run again."""
    return is_shared(task) and 0 < task.workers <= task.successes


def record_shared(
    connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome], *, policy: EndPolicy
) -> tuple[dict[int, Recorded], list[Ended]]:
    """Record outcomes of running leases of tasks for several workers.

    Return the records by lease, and the tasks that ended, which the caller announces. Locks the
    leases by id, then their tasks by id.
    """
    recorded: dict[int, Recorded] = {}
    all_ended: list[Ended] = []
    with installed(connection):
        dialect = dialect_for(connection)
        held = lock_shared(connection, _leases_to_lock(connection, outcomes))
        now = dialect.now(connection) if held else None
        for outcome in sorted(outcomes):
            if now is None or outcome.lease_id not in held:
                continue
            lease = Lease.objects.using(connection.alias).get(id=outcome.lease_id)
            row = Task.objects.using(connection.alias).get(id=lease.task_id)
            task = MultiWorkerTask(connection, row, now=now, policy=policy)
            lease_status = task.record(outcome, lease)
            all_ended += task.settle()
            recorded[lease.id] = Recorded(str(row.status), lease_status, row.step_id)
    return recorded, all_ended


def _leases_to_lock(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> list[int]:
    """Return the leases that these outcomes may change; a stop also reaches a task's other leases.

    If they were locked only later, after their task, this could deadlock with their workers, which
    lock the leases first.
    """
    lease_ids = {outcome.lease_id for outcome in outcomes}
    stopped = [
        outcome.lease_id
        for outcome in outcomes
        if EFFECTS[outcome.kind].task_status is TaskStatus.CANCELLED
    ]
    if stopped:
        leases = Lease.objects.using(connection.alias)
        tasks = leases.filter(id__in=stopped).values("task_id")
        siblings = leases.filter(task_id__in=tasks, status=LeaseStatus.RUNNING, is_shared=True)
        lease_ids |= set(siblings.values_list("id", flat=True))
    return sorted(lease_ids)


def close(
    connection: BaseDatabaseWrapper, ids: Sequence[UUID], *, policy: EndPolicy, reason: str
) -> dict[UUID, str]:
    """Close shared tasks to further workers. Return their new statuses.

    A task that nobody is running ends as cancelled. The caller's transaction holds the locks.
    """
    closed: dict[UUID, str] = {}
    with installed(connection):
        dialect = dialect_for(connection)
        tasks = Task.objects.using(connection.alias).filter(
            id__in=ids, route=1, status=TaskStatus.RUNNING
        )
        chosen = sorted(str(task_id) for task_id in tasks.values_list("id", flat=True))
        if not chosen:
            return {}
        lock_tasks(connection, chosen)
        now = dialect.now(connection)
        all_ended: list[Ended] = []
        for row in filter(is_shared, tasks.order_by("id")):
            row.open_slots = 0
            task = MultiWorkerTask(connection, row, now=now, policy=policy)
            all_ended += task.cancel_unless_running(reason)
            closed[row.id] = str(row.status)
        announce(connection, all_ended)
    return closed


def end_overdue(connection: BaseDatabaseWrapper, *, policy: EndPolicy) -> list[str]:
    """Fail shared tasks past their deadline that wait for their next worker. Return their ids.

    Running attempts are left to their workers.
    """
    dialect = dialect_for(connection)
    ids = select_ids(connection, OVERDUE, limit=BATCH)
    for task_id in ids:
        with transaction(connection), installed(connection):
            lock_tasks(connection, [task_id])
            now = dialect.now(connection)
            tasks = Task.objects.using(connection.alias).filter(id=task_id, deadline_at__lte=now)
            row = tasks.filter(status=TaskStatus.RUNNING, open_slots__gt=0).first()
            if row is not None:
                row.open_slots = 0
                row.error_class = class_path(DeadlineExceeded)
                row.error_message = "The deadline passed before all workers had run it."
                task = MultiWorkerTask(connection, row, now=now, policy=policy)
                announce(connection, task.settle())
    return ids


def reopen(connection: BaseDatabaseWrapper, tasks: Iterable[Task]) -> None:
    """Restore the places without success of locked, finished tasks; no worker's delay applies."""
    for task in filter(is_shared, tasks):
        rows = Task.objects.using(connection.alias).filter(id=task.id)
        rows.update(open_slots=task.workers - task.successes, running_leases=0)
        if task.workers == 0:
            rows.update(pinned_to="")  # A broadcast without workers finds new ones.
        Lease.objects.using(connection.alias).filter(task_id=task.id).update(retry_at=None)


def begin_anew(connection: BaseDatabaseWrapper, task: Task) -> None:
    """Make a locked, finished shared task run on all its workers again; its leases become history.

    A broadcast takes the workers that are alive at that time.
    """
    if not is_shared(task):
        return
    leases = Lease.objects.using(connection.alias).filter(task_id=task.id)
    leases.update(is_shared=False, retry_at=None)
    rows = Task.objects.using(connection.alias).filter(id=task.id)
    rows.update(successes=0, running_leases=0, open_slots=task.workers)
    if task.broadcast:
        rows.update(workers=0, open_slots=0, worker_names=None, pinned_to="")
