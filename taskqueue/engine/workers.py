"""Workers: register under a name, give signs of life, end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, TypedDict, Unpack
from uuid import UUID, uuid4

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for, execute, select
from taskqueue.engine.statement import Fact, Statement, change
from taskqueue.models import Worker
from taskqueue.models.worker import WorkerStatus

# A sign of life of a worker that was thought lost takes that back. What was asked of the worker is
# seen by the statement that tells it. SQLite 3.40 finds IS NULL false for every column of a
# RETURNING where the table has JSON columns: what may be null is returned as it is.
TOUCH = Statement.of("""
    UPDATE taskqueue_worker
    SET seen_at = {now},
        status = %(status)s,
        running_leases = %(running_leases)s,
        trouble = %(trouble)s,
        memory_bytes = %(memory_bytes)s,
        cpu_percent = %(cpu_percent)s,
        stopped_at = NULL,
        request_seen_at = CASE
            WHEN request = '' THEN NULL
            WHEN request_seen_at IS NOT NULL THEN request_seen_at
            WHEN requested_at > {now} THEN requested_at
            ELSE {now}
        END
    WHERE id = %(worker)s AND incarnation = %(incarnation)s
    RETURNING
        request, requested_by, request_reason,
        CAST(wanted AS text), CAST(wanted_at AS text), CAST(wanted_seen_at AS text)
""")

TAKE_UP = Statement(
    postgresql="""
        UPDATE taskqueue_worker
        SET concurrency = %(concurrency)s::int,
            queues = %(queues)s::jsonb,
            queue_slots = %(queue_slots)s::jsonb,
            queue_order = %(queue_order)s::jsonb,
            is_strict = %(is_strict)s::boolean,
            definition_slots = %(definition_slots)s::jsonb,
            wanted_seen_at = CASE WHEN CAST(wanted_at AS text) = %(at)s THEN clock_timestamp() END
        WHERE id = %(worker)s AND incarnation = %(incarnation)s
    """,
    sqlite="""
        UPDATE taskqueue_worker
        SET concurrency = CAST(%(concurrency)s AS integer),
            queues = %(queues)s,
            queue_slots = %(queue_slots)s,
            queue_order = %(queue_order)s,
            is_strict = %(is_strict)s = 'true',
            definition_slots = %(definition_slots)s,
            wanted_seen_at = CASE WHEN CAST(wanted_at AS text) = %(at)s THEN %(now)s END
        WHERE id = %(worker)s AND incarnation = %(incarnation)s
    """,
)

# Every worker runs these: rows that somebody else has are left for a later time.
MARK_LOST = Statement.of("""
    UPDATE taskqueue_worker
    SET status = 'lost', stopped_at = {now}, is_idle = false
    WHERE id IN (
        SELECT id
        FROM taskqueue_worker
        WHERE status IN ('running', 'quiet', 'stopping') AND {since seen_at} > lease_seconds
        ORDER BY id
        {skip_locked}
    )
""")
FORGET_GONE = Statement.of("""
    DELETE FROM taskqueue_worker
    WHERE id IN (
        SELECT id
        FROM taskqueue_worker
        WHERE status IN ('stopped', 'lost')
            AND {since seen_at} > 86400
            AND NOT EXISTS (
                SELECT 1
                FROM taskqueue_lease AS lease
                WHERE lease.status = 'running' AND lease.worker_id = taskqueue_worker.name
            )
        ORDER BY id
        {skip_locked}
    )
""")

UNKNOWN = Statement(
    postgresql="""
        SELECT id
        FROM taskqueue_lease
        WHERE status = 'running'
            AND worker_id = %(worker)s
            AND claimed_at >= %(since)s
            AND id <> ALL (%(known)s::bigint[])
    """,
    sqlite="""
        SELECT id
        FROM taskqueue_lease
        WHERE status = 'running'
            AND worker_id = %(worker)s
            AND claimed_at >= %(since)s
            AND id NOT IN (SELECT value FROM json_each(%(known)s))
    """,
)
REMEMBER_QUEUE = Statement.of("""
    INSERT INTO taskqueue_queue (name, created_at) VALUES (%(name)s, {now})
    ON CONFLICT (name) DO NOTHING
""")

SET_LISTENING = "UPDATE taskqueue_worker SET listens = %s WHERE id = %s"
SET_IDLE = "UPDATE taskqueue_worker SET is_idle = %s WHERE id = %s"


KEPT = ("id", "name")


@dataclass(frozen=True, kw_only=True)
class Registration:
    """A worker's description of itself."""

    name: str
    host: str
    pid: int
    queues: Mapping[str, Any]
    concurrency: int
    pool: str
    versions: Mapping[str, str]
    lease_seconds: float
    tags: Sequence[str] = ()
    queue_slots: Mapping[str, int] = field(default_factory=dict)
    queue_order: Sequence[str] = ()
    is_strict: bool = False
    definition_slots: Mapping[str, int] = field(default_factory=dict)
    incarnation: UUID = field(default_factory=uuid4)


@dataclass(frozen=True)
class Registered:
    """A worker's row, and when it began by the database's clock."""

    id: int
    started_at: datetime


@dataclass(frozen=True)
class Holder:
    """The worker that holds a name: it is alive if `seen_at` moves."""

    host: str
    pid: int
    seen_at: datetime
    is_stale: bool
    incarnation: UUID


# The number of live workers that serve the duties before this one.
RANK = Fact.of("""
    SELECT count(*)
    FROM taskqueue_worker
    WHERE status = 'running' AND id < %(worker)s AND {since seen_at} < lease_seconds
""")


class Wanted(NamedTuple):
    """The changes that people have asked of a running worker."""

    concurrency: int | None
    queues: str | None
    strict: bool | None
    definition_slots: str | None
    # When it was last changed, as the database writes it: only to be compared with.
    at: str


class Asked(NamedTuple):
    """A request to a worker; `request` is empty if there is none."""

    request: str
    by: str
    reason: str
    # None where nothing is to change, or the worker has taken up all of it.
    wanted: Wanted | None = None


class Terms(TypedDict):
    """The slots and queues of a worker: columns of its row."""

    concurrency: int
    queues: Mapping[str, int]
    queue_slots: Mapping[str, int]
    queue_order: Sequence[str]
    is_strict: bool
    definition_slots: Mapping[str, int]


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
        # Every column but the name begins anew, as that of a new row does.
        fresh = Worker(**vars(registration), started_at=now, seen_at=now)
        columns = (field.attname for field in Worker._meta.concrete_fields)
        values = {column: getattr(fresh, column) for column in columns if column not in KEPT}
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


class Sign(TypedDict):
    """A sign of life: what a worker writes of itself."""

    status: str
    running_leases: int
    trouble: str
    memory_bytes: int | None
    # Of one processor.
    cpu_percent: float | None


def touch(
    connection: BaseDatabaseWrapper, *, worker_id: int, incarnation: UUID, **sign: Unpack[Sign]
) -> Asked | None:
    """Give a sign of life, and acknowledge what is asked of the worker.

    None if the name now belongs to another incarnation.
    """
    rows = select(connection, TOUCH, worker=worker_id, incarnation=incarnation, **sign)
    if not rows:
        return None
    request, by, reason, wanted, wanted_at, taken_up_at = rows[0]
    if wanted_at is None or taken_up_at is not None:
        return Asked(request, by, reason)
    changes = json.loads(wanted)
    parts = {name: changes.get(name) for name in Wanted._fields if name != "at"}
    return Asked(request, by, reason, Wanted(**parts, at=wanted_at))


def take_up(
    connection: BaseDatabaseWrapper, *, worker_id: int, incarnation: UUID, at: str, terms: Terms
) -> None:
    """Say what the worker does from now on, after the change that was made then.

    A later change stays to be taken up.
    """
    execute(
        connection, TAKE_UP, worker=worker_id, incarnation=incarnation, at=at,
        **{name: json.dumps(value) for name, value in terms.items()},
    )  # fmt: skip


def set_listening(connection: BaseDatabaseWrapper, *, worker_id: int, listens: bool | None) -> None:
    """Say whether this worker listens, or polls; None: it polls until it can find out."""
    change(connection, SET_LISTENING, (listens, worker_id))


def set_idle(connection: BaseDatabaseWrapper, *, worker_id: int, is_idle: bool) -> None:
    """Say whether an enqueue has to wake this worker."""
    change(connection, SET_IDLE, (is_idle, worker_id))


def unregister(*, worker_id: int, incarnation: UUID) -> None:
    """Say that this worker has ended."""
    connection = project_connection()
    now = dialect_for(connection).now(connection)
    Worker.objects.using(connection.alias).filter(id=worker_id, incarnation=incarnation).update(
        status=WorkerStatus.STOPPED, stopped_at=now, is_idle=False, running_leases=0
    )


def mark_lost(connection: BaseDatabaseWrapper) -> int:
    """Mark the workers that have not been seen for a lease's time; how many there were."""
    return execute(connection, MARK_LOST)


def forget_gone(connection: BaseDatabaseWrapper) -> int:
    """Delete the rows of workers that have been gone for a day; how many there were."""
    return execute(connection, FORGET_GONE)


def remember_queues(connection: BaseDatabaseWrapper, names: Sequence[str]) -> None:
    """Give every queue a row, so that it can be seen."""
    for name in names:
        execute(connection, REMEMBER_QUEUE, name=name)


def unknown_leases(
    connection: BaseDatabaseWrapper, *, worker: str, known: Sequence[int], since: datetime
) -> list[int]:
    """The running leases that this worker took since then and does not know."""
    rows = select(connection, UNKNOWN, worker=worker, known=list(known), since=since)
    return [row[0] for row in rows]
