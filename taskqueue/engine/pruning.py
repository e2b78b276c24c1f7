"""Pruning all that is old enough at once: what the workers do little by little."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.engine.control.audit import Act, Person, audit
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.idempotency import prune_idempotency_keys
from taskqueue.engine.operations.pruning import prune_operations
from taskqueue.engine.rollups import BATCH as MERGE_BATCH
from taskqueue.engine.rollups import merge_rollups
from taskqueue.engine.schedules.serving import prune_occurrences
from taskqueue.engine.workers import forget_gone

BATCH = 500
"""Rows of one transaction; those that delete by themselves have the same."""
AUDIT_KEPT = timedelta(days=366)

Step = Callable[[BaseDatabaseWrapper], int]


def prune_tasks(connection: BaseDatabaseWrapper) -> int:
    """A batch of tasks past their retention, with attempts and log lines."""
    return dialect_for(connection).prune(connection, limit=BATCH)


def prune_audit(connection: BaseDatabaseWrapper) -> int:
    """A batch of the audit, where it is older than it is kept."""
    return dialect_for(connection).prune_audit(connection, limit=BATCH, kept=AUDIT_KEPT)


STEPS: dict[str, Step] = {
    "tasks": prune_tasks,
    "occurrences": prune_occurrences,
    "operations": prune_operations,
    "idempotency_keys": prune_idempotency_keys,
    "audit": prune_audit,
    "workers": forget_gone,
}
"""What is deleted, and the step that deletes a batch of it."""


def prune_all(connection: BaseDatabaseWrapper, *, person: Person) -> dict[str, int]:
    """Delete all that is past its time, batch by batch, and merge rollups; how many rows of each.

    Each batch is a transaction of its own: interrupted, it has done so much. Audited where
    anything was deleted.
    """
    done = {name: _repeated(connection, step) for name, step in STEPS.items()}
    done["rollups"] = _merged(connection)
    if any(done[name] for name in STEPS):
        told = ", ".join(f"{number} {name}" for name, number in done.items() if number)
        audit(connection, "", "prune", [Act("", detail=told)], person=person)
    return done


def _repeated(connection: BaseDatabaseWrapper, step: Step) -> int:
    total = 0
    while True:
        with atomic(using=connection.alias):
            number = step(connection)
        total += number
        if number < BATCH:
            return total


def _merged(connection: BaseDatabaseWrapper) -> int:
    total = 0
    while True:
        number = merge_rollups(connection)
        total += number
        if number < MERGE_BATCH:
            return total
