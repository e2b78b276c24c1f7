"""Register a worker under its name, and record its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.db import IntegrityError
from django.db.transaction import atomic

from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.models import Worker
from taskqueue.models.worker import WorkerStatus

# The columns of a row that are kept when another worker takes its name.
KEPT = ("id", "name")


@dataclass(frozen=True, kw_only=True)
class Registration:
    """How a worker describes itself."""

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
    """A worker's row, and its start by the database's clock."""

    id: int
    started_at: datetime


@dataclass(frozen=True)
class Holder:
    """The worker that holds a name; it is alive if `seen_at` advances."""

    host: str
    pid: int
    seen_at: datetime
    is_stale: bool
    incarnation: UUID


def register(
    registration: Registration, *, replacing: datetime | None = None
) -> Registered | Holder:
    """Take the name, or return its holder.

    A name is free when its last worker has ended, is known to be lost, or has not been seen for the
    duration of a lease; or if `replacing` says that the holder last seen at that time is known to
    be dead.
    """
    alias = project_connection().alias
    workers = Worker.objects.using(alias)
    with atomic(using=alias):
        now = dialect_for(project_connection()).now(project_connection())
        # All other columns get the values of a new row.
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


def unregister(*, worker_id: int, incarnation: UUID) -> None:
    """Record that this worker has ended."""
    connection = project_connection()
    now = dialect_for(connection).now(connection)
    Worker.objects.using(connection.alias).filter(id=worker_id, incarnation=incarnation).update(
        status=WorkerStatus.STOPPED, stopped_at=now, is_idle=False, running_leases=0
    )
