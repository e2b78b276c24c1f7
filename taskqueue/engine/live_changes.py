"""Changes that reach a running attempt: the workers of its task, and its ping interval."""

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

EXCLUDED = "The task's worker_names were changed and no longer include this worker."


class LiveChanges(NamedTuple):
    """The changes that a ping has found."""

    # Leases that ended because their worker may no longer run the task.
    ended: frozenset[int]
    # The ping interval of each lease's task; None for that of the settings.
    ping_seconds: dict[int, float | None]


def apply_live_changes(
    connection: BaseDatabaseWrapper,
    *,
    worker: str,
    lease_ids: Sequence[int],
    policy: EndPolicy,
    tally: Tally,
) -> LiveChanges:
    """Read the options of a worker's leases, and end those that exclude it, uncounted."""
    rows = dialect_for(connection).live_terms(connection, lease_ids)
    excluded = [
        Outcome(lease_id, OutcomeKind.RETURNED, 0.0, error_message=EXCLUDED)
        for lease_id, names, _ in rows
        if names is not None and worker not in json.loads(names)
    ]
    ended = record(connection, excluded, policy=policy, tally=tally) if excluded else {}
    return LiveChanges(frozenset(ended), {lease_id: seconds for lease_id, _, seconds in rows})
