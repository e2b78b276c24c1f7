"""Closing tasks of several workers to further ones, by hand or by their deadline; and reopening."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.retries import class_path
from taskqueue.core.states import TaskStatus
from taskqueue.engine.connections import installed, transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.ends import announce
from taskqueue.engine.limits import Limits
from taskqueue.engine.multi_worker.settling import (
    cancel_unless_running,
    ended,
    leases_of,
    settle,
)
from taskqueue.engine.rows import Ended
from taskqueue.exceptions import DeadlineExceeded
from taskqueue.models import Task

BATCH = 100


def close(
    connection: BaseDatabaseWrapper, ids: Sequence[UUID], *, limits: Limits, reason: str
) -> dict[UUID, str]:
    """Let no further worker take those of the tasks that are shared; their statuses then.

    One that nobody runs at this moment ends as cancelled. The caller's transaction holds the locks.
    """
    with installed(connection):
        tasks = Task.objects.using(connection.alias).filter(
            id__in=ids, route=1, status=TaskStatus.RUNNING
        )
        chosen = sorted(str(task_id) for task_id in tasks.values_list("id", flat=True))
        if not chosen:
            return {}
        dialect_for(connection).lock_tasks(connection, chosen)
        now = dialect_for(connection).now(connection)
        closed: dict[UUID, str] = {}
        all_ended: list[Ended] = []
        for task in tasks.order_by("id"):
            if not is_shared(task):
                continue
            task.open_slots = 0
            cancel_unless_running(connection, task, now=now, limits=limits, reason=reason)
            closed[task.id] = str(task.status)
            all_ended += ended(task)
        announce(connection, all_ended)
        return closed


def reopen(connection: BaseDatabaseWrapper, tasks: Iterable[Task]) -> None:
    """Give locked, finished tasks the places back that had no success; no worker has to wait."""
    for task in tasks:
        if not is_shared(task):
            continue
        rows = Task.objects.using(connection.alias).filter(id=task.id)
        rows.update(open_slots=task.workers - task.successes, running_leases=0)
        if task.workers == 0:
            rows.update(pinned_to="")  # A broadcast without workers finds new ones.
        leases_of(connection, task).update(retry_at=None)


def begin_anew(connection: BaseDatabaseWrapper, task: Task) -> None:
    """Have a locked, finished shared task run by all its workers again; leases become history.

    A broadcast finds the workers that live then.
    """
    if not is_shared(task):
        return
    leases_of(connection, task).update(is_shared=False, retry_at=None)
    rows = Task.objects.using(connection.alias).filter(id=task.id)
    rows.update(successes=0, running_leases=0, open_slots=task.workers)
    if task.broadcast:
        rows.update(workers=0, open_slots=0, worker_names=None, pinned_to="")


def is_shared(task: Task) -> bool:
    """Whether several workers are to run it."""
    return task.workers > 1 or task.broadcast


def has_all_successes(task: Task) -> bool:
    """Whether a shared task leaves nothing to run again."""
    return is_shared(task) and 0 < task.workers <= task.successes


def end_overdue(connection: BaseDatabaseWrapper, *, limits: Limits) -> list[str]:
    """Fail shared tasks past their deadline that wait for a next worker; the ids of them.

    What runs is its workers' to end.
    """
    wording = dialect_for(connection)
    ids = wording.overdue_shared(connection, limit=BATCH)
    for task_id in ids:
        with transaction(connection), installed(connection):
            wording.lock_tasks(connection, [task_id])
            now = wording.now(connection)
            tasks = Task.objects.using(connection.alias).filter(id=task_id, deadline_at__lte=now)
            task = tasks.filter(status=TaskStatus.RUNNING, open_slots__gt=0).first()
            if task is None:
                continue
            task.open_slots = 0
            task.error_class = class_path(DeadlineExceeded)
            task.error_message = "The deadline passed before all workers had run it."
            settle(connection, task, now=now, limits=limits)
            announce(connection, ended(task))
    return ids
