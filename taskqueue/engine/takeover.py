"""Take over: end the leases of lost workers, so that other workers run their tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.outcomes import Outcome, OutcomeKind, Recorded
from taskqueue.core.states import LeaseStatus
from taskqueue.engine.connections import installed, orm_transaction, transaction
from taskqueue.engine.dialect import dialect_for, select
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.sessions import take_write_lock
from taskqueue.engine.statement import Moment, Statement
from taskqueue.engine.tally import Tally
from taskqueue.models import Lease, Task, Worker
from taskqueue.models.worker import WorkerStatus

BATCH = 500
LOST = "taskqueue.exceptions.AttemptLost"
EXPIRED = "The lease ran out: its worker stopped renewing it."
ENDED_ON_HOST = "Its worker's processes had ended on their host."
# Locks: leases that ran out, skipping those that are being renewed or recorded. PostgreSQL checks
# the expiry again on the row that it has locked. Leases are spared for the duration of a lease
# after the server's own start, because nobody could renew them while it was away. Ordered by id,
# PostgreSQL may read the primary key of all leases there ever were; so would SQLite with the plain
# `id`.
EXPIRED_LEASES = Statement(
    postgresql="""
        SELECT id
        FROM taskqueue_lease
        WHERE status = 'running'
            AND expires_at < clock_timestamp()
            AND pg_postmaster_start_time() + %(grace)s::interval < clock_timestamp()
        ORDER BY expires_at
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    """,
    sqlite="""
        SELECT id
        FROM taskqueue_lease
        WHERE status = 'running' AND expires_at < %(now)s
        ORDER BY +id
        LIMIT %(limit)s
    """,
)
NEXT_EXPIRY = Moment.of("SELECT min(expires_at) FROM taskqueue_lease WHERE status = 'running'")


def record_lost(
    connection: BaseDatabaseWrapper,
    lease_ids: Iterable[int],
    message: str,
    *,
    policy: EndPolicy,
    tally: Tally,
    kind: OutcomeKind = OutcomeKind.LOST,
) -> dict[int, Recorded]:
    """End these locked leases as lost."""
    outcomes = [
        Outcome(lease_id, kind, 0.0, error_class=LOST, error_message=message)
        for lease_id in lease_ids
    ]
    return record(connection, outcomes, policy=policy, tally=tally)


def expired_leases(
    connection: BaseDatabaseWrapper, *, grace: timedelta, limit: int = BATCH
) -> list[int]:
    """Lock the first leases that have run out, and return their ids."""
    return [row[0] for row in select(connection, EXPIRED_LEASES, grace=grace, limit=limit)]


def take_over(
    connection: BaseDatabaseWrapper,
    *,
    policy: EndPolicy,
    grace: timedelta,
    tally: Tally,
    suspects: Collection[int] | None = None,
) -> dict[int, Recorded]:
    """End leases that have run out by the database's clock. Return the records by lease.

    Each lease is locked first and its expiry checked again under the lock; a lease that is being
    renewed or recorded is skipped. If `suspects` is given, only those are ended. Nothing happens
    within `grace` of the database's own start.
    """
    with tally.guard(), transaction(connection):
        expired = expired_leases(connection, grace=grace)
        if suspects is not None:
            expired = [lease_id for lease_id in expired if lease_id in suspects]
        if not expired:
            return {}
        return record_lost(connection, expired, EXPIRED, policy=policy, tally=tally)


def expired(connection: BaseDatabaseWrapper, *, grace: timedelta) -> list[int]:
    """Return the leases that have run out now."""
    with transaction(connection):
        return expired_leases(connection, grace=grace)


def known_incarnations(
    connection: BaseDatabaseWrapper, incarnations: Collection[UUID]
) -> set[UUID]:
    """Return those of the incarnations that are workers of this database."""
    with installed(connection):
        rows = Worker.objects.using(connection.alias).filter(incarnation__in=incarnations)
        return set(rows.values_list("incarnation", flat=True))


class Departed(NamedTuple):
    """A worker that has ended, and its leases."""

    name: str
    # The records, by lease.
    lost: Mapping[int, Recorded]
    # Whether no lease is left.
    is_done: bool


def end_departed(
    connection: BaseDatabaseWrapper, incarnation: UUID, *, policy: EndPolicy, tally: Tally
) -> Departed:
    """End the leases that this incarnation claimed, as lost.

    The caller has proof that none of its processes is left. Locks: the worker's row, so that no
    other process takes the name meanwhile; then leases by id; then their tasks by id. It waits for
    none of them: what another session has locked is left for the next look.
    """
    lost: dict[int, Recorded] = {}
    last = 0
    while True:
        with tally.guard(), orm_transaction(connection):
            workers = Worker.objects.using(connection.alias).filter(incarnation=incarnation)
            take_write_lock(connection)
            worker = workers.select_for_update(skip_locked=True).first()
            if worker is None:
                return Departed("", lost, is_done=not workers.exists())
            leases = Lease.objects.using(connection.alias).filter(
                worker_id=worker.name,
                status=LeaseStatus.RUNNING,
                claimed_at__gte=worker.started_at,
            )
            ids, free = _locked(leases, after=last)
            lost |= record_lost(connection, free, ENDED_ON_HOST, policy=policy, tally=tally)
            if len(ids) == BATCH:
                last = ids[-1]
                continue
            is_done = not leases.exists()
            if is_done:
                now = dialect_for(connection).now(connection)
                living = workers.exclude(status__in=[WorkerStatus.STOPPED, WorkerStatus.LOST])
                living.update(status=WorkerStatus.LOST, stopped_at=now, is_idle=False)
            return Departed(worker.name, lost, is_done)


def _locked(leases: QuerySet[Lease], *, after: int) -> tuple[list[int], list[int]]:
    """Return the next leases that are free, and those of them whose tasks are free too."""
    held = leases.filter(id__gt=after).order_by("id").select_for_update(skip_locked=True)
    tasks = dict(held.values_list("id", "task_id")[:BATCH])
    rows = Task.objects.using(leases.db).filter(id__in=set(tasks.values())).order_by("id")
    free = set(rows.select_for_update(skip_locked=True).values_list("id", flat=True))
    return list(tasks), [lease_id for lease_id, task_id in tasks.items() if task_id in free]
