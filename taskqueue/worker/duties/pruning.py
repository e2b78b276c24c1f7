"""Deleting what is past its time, a batch at a time."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.idempotency import prune_idempotency_keys
from taskqueue.engine.operations.pruning import prune_operations
from taskqueue.engine.pruning import BATCH, prune_audit, prune_tasks
from taskqueue.engine.schedules.serving import prune_occurrences
from taskqueue.worker.duties.duty import Timed, Turn, short_transaction


class PruneTasks(Timed):
    """Deletes tasks whose retention is over."""

    interval = 10.0
    pause = 0.1

    def step(self, turn: Turn) -> float | None:
        super().step(turn)
        return self.pause if self.next_at <= turn.now + self.pause else None

    def run(self, connection: BaseDatabaseWrapper) -> bool:
        with short_transaction(connection):
            return prune_tasks(connection) == BATCH


class PruneHistory(Timed):
    """Deletes what else is too old."""

    interval = 3600.0

    def run(self, connection: BaseDatabaseWrapper) -> bool:
        with short_transaction(connection):
            pruned = [prune_audit(connection)]
        for prune in (prune_occurrences, prune_operations, prune_idempotency_keys):
            pruned.append(prune(connection))
        return max(pruned) == BATCH
