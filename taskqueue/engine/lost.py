"""The one definition of a lost worker, and of attempts that it held."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from itertools import starmap
from typing import NamedTuple
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, OuterRef, Q, Subquery
from django.db.models.expressions import RawSQL

from taskqueue.conf import get_settings
from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.engine.statement import SINCE, Statement, text_of
from taskqueue.models import Lease, Task, Worker

# A worker is lost when it has ended, when another process has taken its name since the claim, or
# when it has been silent for longer than its own lease, which is several of its pings. Silence is
# counted from the start of the database server at the earliest, because nobody could ping before. A
# worker without a row has lost its name, and ends with its next ping; a recent claim is spared
# until then.
#
# The status is written literally, because SQLite would not use the index of running leases
# otherwise.
_IS_LOST = """
taskqueue_lease.status = 'running' AND COALESCE(
    (
        SELECT
            worker.status = 'stopped'
            OR worker.started_at > taskqueue_lease.claimed_at
            OR {since worker.seen_at} > worker.lease_seconds
        FROM taskqueue_worker AS worker
        WHERE worker.name = taskqueue_lease.worker_id
    ),
    {since taskqueue_lease.claimed_at} > %s
)
"""
IS_LOST = Statement(
    postgresql=SINCE.sub(
        r"EXTRACT(epoch FROM clock_timestamp() - GREATEST(\1, pg_postmaster_start_time()))",
        _IS_LOST,
    ),
    sqlite=SINCE.sub(r"(julianday('now') - julianday(\1)) * 86400.0", _IS_LOST),
)
# The message of an attempt that a person ended; its body may still have run.
ENDED_BY_HAND = "Its worker was lost, and somebody ended the attempt by hand."


class LostAttempt(NamedTuple):
    """An attempt that a lost worker holds."""

    lease_id: int
    task_id: UUID
    attempt: int
    worker: str
    # The last sign of life; None if another process has the name, or no row is left.
    seen_at: datetime | None
    expires_at: datetime


def lost_attempts(
    connection: BaseDatabaseWrapper,
    task_ids: Collection[UUID] | None = None,
    *,
    limit: int | None = None,
) -> list[LostAttempt]:
    """Return the running attempts of these tasks, or of all tasks, whose worker is lost.

    This is decided by the database's clock.
    """
    is_lost = RawSQL(text_of(connection, IS_LOST), (_usual_lease(),), output_field=BooleanField())  # noqa: S611
    leases = Lease.objects.using(connection.alias).filter(is_lost).order_by("worker_id", "id")
    if task_ids is not None:
        leases = leases.filter(task_id__in=task_ids)
    same_process = Worker.objects.filter(
        name=OuterRef("worker_id"), started_at__lte=OuterRef("claimed_at")
    )
    seen_at = Subquery(same_process.values("seen_at"))
    rows = leases.values_list("id", "task_id", "attempt", "worker_id", seen_at, "expires_at")
    return list(starmap(LostAttempt, rows[:limit]))


def is_held_by_lost_worker(connection: BaseDatabaseWrapper) -> Q:
    """Match the tasks of which a lost worker holds an attempt."""
    text = f"SELECT task_id FROM taskqueue_lease WHERE {text_of(connection, IS_LOST)}"  # noqa: S608
    return Q(id__in=RawSQL(text, (_usual_lease(),)))  # noqa: S611  (both are constants)


def _usual_lease() -> float:
    return get_settings().LEASE_DURATION.total_seconds()


def runs_on(connection: BaseDatabaseWrapper) -> Q:
    """Match the running tasks of which no lost worker holds an attempt."""
    return Q(status=TaskStatus.RUNNING) & ~is_held_by_lost_worker(connection)


def is_held_by_lost(connection: BaseDatabaseWrapper, task_id: UUID) -> bool:
    """Return whether a lost worker holds an attempt of the task."""
    return bool(lost_attempts(connection, [task_id], limit=1))


def was_lost(
    connection: BaseDatabaseWrapper, task: Task, leases: Iterable[Lease] | None = None
) -> bool:
    """Return whether a lost worker holds the task, or its last attempt was ended for that reason.

    `leases` are its latest attempts, if they are known already.
    """
    if task.status == TaskStatus.RUNNING and is_held_by_lost(connection, task.id):
        return True
    if leases is None:
        lost = Lease.objects.using(connection.alias).filter(
            task_id=task.id, status=LeaseStatus.LOST
        )
        leases = lost.only("attempt", "status", "error_message")
    is_shared = task.workers > 1 or task.broadcast
    since = task.attempts_before_retry if is_shared else task.attempt
    return any(
        lease.attempt >= since
        and lease.status == LeaseStatus.LOST
        and lease.error_message == ENDED_BY_HAND
        for lease in leases
    )
