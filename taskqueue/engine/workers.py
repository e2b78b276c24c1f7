"""Workers: register under a name, give signs of life, end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.looks import Fact
from taskqueue.engine.statement import change, fetch
from taskqueue.models import Worker
from taskqueue.models.worker import WorkerStatus

# A sign of life of a worker that was thought lost takes that back. What was asked of the worker is
# seen by the statement that tells it.
_TOUCH = """
UPDATE taskqueue_worker
SET seen_at = {clock}, status = %s, running_leases = %s, trouble = %s,
    memory_bytes = %s, stopped_at = NULL,
    request_seen_at = CASE
        WHEN request <> '' THEN COALESCE(request_seen_at, {later}(requested_at, {clock}))
    END
WHERE id = %s AND incarnation = %s
RETURNING request, requested_by, request_reason
"""
_CLOCK = {
    "postgresql": "clock_timestamp()",
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'now')",
}
_LATER = {"postgresql": "GREATEST", "sqlite": "MAX"}
"""SQLite's own clock has milliseconds, the rows have more: nothing is seen before it was asked."""
TOUCH = {
    vendor: _TOUCH.format(clock=clock, later=_LATER[vendor]) for vendor, clock in _CLOCK.items()
}

# Every worker runs these: rows that somebody else has are left for a later time.
_MARK_LOST = """
UPDATE taskqueue_worker
SET status = 'lost', stopped_at = {clock}, is_idle = false
WHERE id IN (
    SELECT id
    FROM taskqueue_worker
    WHERE status IN ('running', 'quiet', 'stopping') AND {seconds_since_seen} > lease_seconds
    ORDER BY id
    {skip_locked}
)
"""
_FORGET_GONE = """
DELETE FROM taskqueue_worker
WHERE id IN (
    SELECT id
    FROM taskqueue_worker
    WHERE status IN ('stopped', 'lost')
        AND {seconds_since_seen} > 86400
        AND NOT EXISTS (
            SELECT 1
            FROM taskqueue_lease AS lease
            WHERE lease.status = 'running' AND lease.worker_id = taskqueue_worker.name
        )
    ORDER BY id
    {skip_locked}
)
"""
_SECONDS_SINCE_SEEN = {
    "postgresql": "EXTRACT(epoch FROM clock_timestamp() - seen_at)",
    "sqlite": "(julianday('now') - julianday(seen_at)) * 86400.0",
}
_SKIP_LOCKED = {"postgresql": "FOR UPDATE SKIP LOCKED", "sqlite": ""}
MARK_LOST, FORGET_GONE = (
    {
        vendor: text.format(
            clock=clock,
            seconds_since_seen=_SECONDS_SINCE_SEEN[vendor],
            skip_locked=_SKIP_LOCKED[vendor],
        )
        for vendor, clock in _CLOCK.items()
    }
    for text in (_MARK_LOST, _FORGET_GONE)
)

REMEMBER_QUEUE = """
INSERT INTO taskqueue_queue (name, created_at) VALUES (%s, {clock})
ON CONFLICT (name) DO NOTHING
"""

SET_LISTENING = "UPDATE taskqueue_worker SET listens = %s WHERE id = %s"
SET_IDLE = "UPDATE taskqueue_worker SET is_idle = %s WHERE id = %s"


@dataclass(frozen=True, kw_only=True)
class Registration:
    """What a worker says of itself."""

    name: str
    host: str
    pid: int
    queues: Mapping[str, Any]
    concurrency: int
    pool: str
    versions: Mapping[str, str]
    lease_seconds: float
    incarnation: UUID = field(default_factory=uuid4)


@dataclass(frozen=True)
class Registered:
    """A worker's row, and when it began by the database's clock."""

    id: int
    started_at: datetime


@dataclass(frozen=True)
class Holder:
    """Who holds a name: alive if `seen_at` moves."""

    host: str
    pid: int
    seen_at: datetime
    is_stale: bool
    incarnation: UUID


RANK = Fact(
    postgresql="""
        SELECT count(*)
        FROM taskqueue_worker
        WHERE status = 'running' AND id < %(worker)s
            AND seen_at > clock_timestamp() - lease_seconds * interval '1 second'
    """,
    sqlite="""
        SELECT count(*)
        FROM taskqueue_worker
        WHERE status = 'running' AND id < %(worker)s
            AND (julianday(%(now)s) - julianday(seen_at)) * 86400.0 < lease_seconds
    """,
)
"""How many live workers stand before this one in serving the duties."""


class Asked(NamedTuple):
    """What somebody asks of a worker; no `request` where nobody asks anything."""

    request: str
    by: str
    reason: str


def register(
    registration: Registration, *, replacing: datetime | None = None
) -> Registered | Holder:
    """Take the name, or give who holds it.

    A name is free when its last worker has ended, is known lost, or has not been seen for a
    lease's time; or when `replacing` says that the holder last seen then is known to be dead.
    """
    alias = project_connection().alias
    workers = Worker.objects.using(alias)
    with atomic(using=alias):
        now = dialect_for(project_connection()).now(project_connection())
        values = {
            "incarnation": registration.incarnation,
            "host": registration.host,
            "pid": registration.pid,
            "status": WorkerStatus.RUNNING.value,
            "queues": dict(registration.queues),
            "concurrency": registration.concurrency,
            "pool": registration.pool,
            "versions": dict(registration.versions),
            "lease_seconds": registration.lease_seconds,
            "started_at": now,
            "seen_at": now,
            "stopped_at": None,
            "running_leases": 0,
            "memory_bytes": None,
            "is_idle": False,
            "listens": None,
            "trouble": "",
            "schedules": None,
            "request": "",
            "requested_at": None,
            "requested_by": "",
            "request_reason": "",
            "request_seen_at": None,
        }
        holder = workers.select_for_update().filter(name=registration.name).first()
        if holder is None:
            try:
                with atomic(using=alias):
                    holder = workers.create(name=registration.name, **values)
            except IntegrityError:
                holder = workers.select_for_update().get(name=registration.name)
            else:
                return Registered(holder.id, now)
        stale = holder.is_silent(now)
        gone = holder.status in (WorkerStatus.STOPPED, WorkerStatus.LOST)
        if not (gone or stale or holder.seen_at == replacing):
            return Holder(holder.host, holder.pid, holder.seen_at, stale, holder.incarnation)
        workers.filter(id=holder.id).update(**values)
        return Registered(holder.id, now)


def touch(
    connection: BaseDatabaseWrapper,
    *,
    worker_id: int,
    incarnation: UUID,
    status: WorkerStatus,
    running_leases: int,
    trouble: str,
    memory_bytes: int | None = None,
) -> Asked | None:
    """Give a sign of life, and acknowledge what is asked of the worker.

    None if the name now belongs to another incarnation.
    """
    stored_incarnation = incarnation if connection.vendor == "postgresql" else incarnation.hex
    rows = fetch(
        connection,
        TOUCH[connection.vendor],
        (
            status.value,
            running_leases,
            trouble,
            memory_bytes,
            worker_id,
            stored_incarnation,
        ),
    )
    return Asked._make(rows[0]) if rows else None


def set_listening(connection: BaseDatabaseWrapper, *, worker_id: int, listens: bool | None) -> None:
    """Say whether this worker listens, or polls; None: it polls until it can find out."""
    with connection.cursor() as cursor:
        cursor.execute(SET_LISTENING, (listens, worker_id))


def set_idle(connection: BaseDatabaseWrapper, *, worker_id: int, is_idle: bool) -> None:
    """Say whether an enqueue has to wake this worker."""
    with connection.cursor() as cursor:
        cursor.execute(SET_IDLE, (is_idle, worker_id))


def unregister(*, worker_id: int, incarnation: UUID) -> None:
    """Say that this worker has ended."""
    connection = project_connection()
    now = dialect_for(connection).now(connection)
    Worker.objects.using(connection.alias).filter(id=worker_id, incarnation=incarnation).update(
        status=WorkerStatus.STOPPED, stopped_at=now, is_idle=False, running_leases=0
    )


def mark_lost(connection: BaseDatabaseWrapper) -> int:
    """Mark the workers that have not been seen for a lease's time; how many there were."""
    return change(connection, MARK_LOST[connection.vendor])


def forget_gone(connection: BaseDatabaseWrapper) -> int:
    """Delete the rows of workers that have been gone for a day; how many there were."""
    return change(connection, FORGET_GONE[connection.vendor])


def remember_queues(connection: BaseDatabaseWrapper, names: Sequence[str]) -> None:
    """Give every queue a row, so that it can be seen."""
    with connection.cursor() as cursor:
        cursor.executemany(REMEMBER_QUEUE.format(clock=_CLOCK[connection.vendor]), _rows(names))


def _rows(names: Sequence[str]) -> list[tuple[str]]:
    return [(name,) for name in names]
