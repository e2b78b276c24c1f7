"""Take over: put back the tasks of leases that ran out."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import Outcome, OutcomeKind, Recorded
from taskqueue.engine.connections import transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.looks import Moment
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.tally import Tally

BATCH = 500
LOST = "taskqueue.exceptions.AttemptLost"
MESSAGE = "The lease ran out: its worker stopped renewing it."
NEXT_EXPIRY = Moment.of("SELECT min(expires_at) FROM taskqueue_lease WHERE status = 'running'")


def take_over(
    connection: BaseDatabaseWrapper,
    *,
    policy: EndPolicy,
    grace: timedelta,
    tally: Tally,
    suspects: Collection[int] | None = None,
) -> dict[int, Recorded]:
    """End leases that have run out by the database's clock; what was recorded, by lease.

    Each lease is locked first and its expiry checked again under the lock; one that is being
    renewed or recorded is skipped. Only `suspects`, if given. Not within `grace` of the
    database's own start.
    """
    wording = dialect_for(connection)
    with tally.guard(), transaction(connection):
        expired = wording.expired_leases(connection, limit=BATCH, grace=grace)
        if suspects is not None:
            expired = [lease_id for lease_id in expired if lease_id in suspects]
        if not expired:
            return {}
        outcomes = [
            Outcome(lease_id, OutcomeKind.LOST, 0.0, error_class=LOST, error_message=MESSAGE)
            for lease_id in expired
        ]
        return record(connection, outcomes, policy=policy, tally=tally)


def expired(connection: BaseDatabaseWrapper, *, grace: timedelta) -> list[int]:
    """The leases that have run out at this moment."""
    with transaction(connection):
        return dialect_for(connection).expired_leases(connection, limit=BATCH, grace=grace)
