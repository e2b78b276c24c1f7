"""The statements that are worded differently for each database, as one contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import Outcome, Recorded
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.rows import (
    NO_FLOORS,
    Candidate,
    Claimed,
    Ended,
    Held,
    LogLine,
    Note,
    Renewal,
    RollupRow,
)
from taskqueue.engine.sessions import is_postgresql, is_sqlite
from taskqueue.engine.specs import Enqueued, EnqueueSpec, Payload
from taskqueue.engine.statement import Statement


class Dialect(Protocol):
    """Each method is one guarded statement, or a few in the caller's transaction."""

    def now(self, connection: BaseDatabaseWrapper) -> datetime:
        """The moment by the database's clock."""

    def insert(
        self, connection: BaseDatabaseWrapper, spec: EnqueueSpec, payload: Payload
    ) -> Enqueued | None:
        """Insert one task; None if another holds its unique key."""

    def insert_many(
        self, connection: BaseDatabaseWrapper, spec: EnqueueSpec, payloads: Sequence[Payload]
    ) -> list[Enqueued]:
        """Insert tasks without unique keys."""

    def claim(
        self,
        connection: BaseDatabaseWrapper,
        *,
        worker: str,
        quotas: Sequence[tuple[str, int]],
        unknown: Sequence[str],
        lease_duration: timedelta,
        floors: Mapping[str, datetime] = NO_FLOORS,
    ) -> list[Claimed]:
        """Lease up to the quota of each queue's ready tasks.

        A queue's floor leaves out those that were due before it.
        """

    def earliest_ready(
        self, connection: BaseDatabaseWrapper, queue_names: Sequence[str]
    ) -> dict[str, datetime]:
        """Return when the earliest ready task of each queue was due: floors that leave nothing out.

        Empty where dead rows cost a claim nothing.
        """

    def ready_queues(self, connection: BaseDatabaseWrapper) -> list[str]:
        """The queues that have a ready task."""

    def candidates(
        self,
        connection: BaseDatabaseWrapper,
        *,
        worker: str,
        queue_names: Sequence[str],
        unknown: Sequence[str],
        limit: int,
    ) -> list[Candidate]:
        """Lock tasks that not every worker may take, but this one may; up to `limit` a queue."""

    def insert_lease(
        self,
        connection: BaseDatabaseWrapper,
        *,
        task_id: str,
        worker: str,
        attempt: int,
        is_shared: bool,
        duration: timedelta,
    ) -> int:
        """Insert a running lease for a task that is locked; its id."""

    def lock_shared(
        self, connection: BaseDatabaseWrapper, lease_ids: Sequence[int]
    ) -> dict[int, str]:
        """Lock those of the leases that run for a task of several workers, then their tasks.

        The ids of the tasks, by lease.
        """

    def lock_tasks(self, connection: BaseDatabaseWrapper, task_ids: Sequence[str]) -> None:
        """Lock tasks, by id."""

    def live_terms(
        self, connection: BaseDatabaseWrapper, lease_ids: Sequence[int]
    ) -> list[tuple[int, str | None, float | None]]:
        """Return what may have changed under running leases: worker names as JSON, the ping."""

    def record_successes(
        self,
        connection: BaseDatabaseWrapper,
        outcomes: Sequence[Outcome],
        retention: timedelta | None,
    ) -> dict[int, Recorded]:
        """Record successes, where the lease still runs and no stop was seen; by lease."""

    def record_endings(
        self,
        connection: BaseDatabaseWrapper,
        outcomes: Sequence[Outcome],
        policy: EndPolicy,
    ) -> dict[int, Recorded]:
        """Record every other outcome, where the lease still runs; by lease."""

    def insert_logs(self, connection: BaseDatabaseWrapper, lines: Sequence[LogLine]) -> None:
        """Keep captured lines of attempts whose lease still runs."""

    def write_notes(self, connection: BaseDatabaseWrapper, notes: Sequence[Note]) -> None:
        """Write starts and progress of attempts whose lease still runs."""

    def write_rollups(self, connection: BaseDatabaseWrapper, rows: Sequence[RollupRow]) -> None:
        """Insert the rows, or set the figures of those that are there."""

    def take_arrivals(
        self, connection: BaseDatabaseWrapper, *, limit: int
    ) -> list[tuple[str, str, int, int]]:
        """Delete up to so many arrivals: queues, names, how many tasks, and how many rows."""

    def renew(self, connection: BaseDatabaseWrapper, held: Sequence[Held]) -> Renewal:
        """Extend leases, and bring what was asked of them."""

    def see_stops(self, connection: BaseDatabaseWrapper, lease_ids: Sequence[int]) -> None:
        """Acknowledge stop requests: from here on these attempts cannot succeed."""

    def expired_leases(
        self, connection: BaseDatabaseWrapper, *, limit: int, grace: timedelta
    ) -> list[int]:
        """Lock leases that have run out, and give their ids."""

    def promote(
        self,
        connection: BaseDatabaseWrapper,
        looks: tuple[Statement, ...],
        *,
        worker_id: int,
        limit: int,
    ) -> tuple[Any, ...]:
        """Make due tasks ready; how many, then what each look saw: for moments, seconds until."""

    def end_overdue(
        self,
        connection: BaseDatabaseWrapper,
        *,
        limit: int,
        failed: timedelta | None,
        cancelled: timedelta | None,
    ) -> list[Ended]:
        """Fail tasks past their deadline and cancel those that expired, where none runs."""

    def prune(self, connection: BaseDatabaseWrapper, *, limit: int) -> int:
        """Delete finished tasks whose retention is over, with their leases and lines."""


def dialect_for(connection: BaseDatabaseWrapper) -> Dialect:
    """The dialect for a connection's database. Raises ValueError for an unsupported one."""
    if is_postgresql(connection):
        from taskqueue.engine.postgresql import DIALECT as POSTGRESQL

        return POSTGRESQL
    if is_sqlite(connection):
        from taskqueue.engine.sqlite import DIALECT as SQLITE

        return SQLITE
    raise ValueError(
        f"taskqueue does not run on {connection.display_name}. "
        "Point TASKQUEUE['DATABASE'] at a PostgreSQL or SQLite database."
    )
