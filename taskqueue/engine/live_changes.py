"""What may be changed under a running attempt: who may run its task, and how often it is pinged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.tally import Tally

EXCLUDED = "The task's worker_names were changed, and leave this worker out."


class Terms(NamedTuple):
    """What a ping found to hold from here on."""

    ended: frozenset[int]
    """Leases that were ended because their worker may no longer run the task."""
    ping_seconds: dict[int, float | None]
    """How often a lease's task wants to be pinged; what is missing follows the settings."""


def heed_terms(
    connection: BaseDatabaseWrapper,
    *,
    worker: str,
    lease_ids: Sequence[int],
    policy: EndPolicy,
    tally: Tally,
) -> Terms:
    """Read the terms of a worker's leases, and end those that exclude it, uncounted."""
    rows = dialect_for(connection).live_terms(connection, lease_ids)
    excluded = [
        Outcome(lease_id, OutcomeKind.RETURNED, 0.0, error_message=EXCLUDED)
        for lease_id, names, _ in rows
        if names is not None and worker not in json.loads(names)
    ]
    ended = record(connection, excluded, policy=policy, tally=tally) if excluded else {}
    return Terms(frozenset(ended), {lease_id: seconds for lease_id, _, seconds in rows})
