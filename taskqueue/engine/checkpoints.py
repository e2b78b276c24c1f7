"""Checkpoints: a small state that a body stores for its next attempt, fenced by the lease."""

from __future__ import annotations

import json
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.core.states import LeaseStatus
from taskqueue.declarations.payload import encode
from taskqueue.engine.dialect import execute, select
from taskqueue.engine.statement import Statement
from taskqueue.exceptions import LeaseEnded

# Locks the lease.
SAVE = Statement.of("""
    UPDATE taskqueue_lease
    SET checkpoint = %(state)s, checkpointed_at = {now}
    WHERE id = %(lease)s AND status = 'running'
""")
# A success discards the state before it. A task of several workers has a state for each worker.
LATEST = Statement.of("""
    SELECT lease.checkpoint, lease.status
    FROM taskqueue_lease AS own
    JOIN taskqueue_lease AS lease ON lease.task_id = own.task_id
    WHERE own.id = %(lease)s
        AND (lease.checkpoint IS NOT NULL OR lease.status = 'succeeded')
        AND (NOT own.is_shared OR lease.worker_id = own.worker_id)
    ORDER BY lease.attempt DESC
    LIMIT 1
""")


def save_checkpoint(connection: BaseDatabaseWrapper, state: Any, *, lease_id: int) -> None:
    """Store the state, in the caller's transaction if there is one.

    Raises `InvalidArguments` or `UnsupportedType` if JSON would change the state or if it is larger
    than MAX_CHECKPOINT, and `LeaseEnded` if the attempt has lost its lease.
    """
    text = encode(state, limit=get_settings().MAX_CHECKPOINT, what="The checkpoint")
    if not execute(connection, SAVE, lease=lease_id, state=text):
        raise LeaseEnded("The lease ended before the body did.")


def latest_checkpoint(connection: BaseDatabaseWrapper, *, lease_id: int) -> Any:
    """Return the state that attempts of this lease's task stored last; None if there is none.

    For a task of several workers, only attempts of the same worker count.
    """
    for state, status in select(connection, LATEST, lease=lease_id):
        if state is not None and status != LeaseStatus.SUCCEEDED:
            return json.loads(state)
    return None
