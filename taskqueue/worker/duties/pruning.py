"""Deleting what is past its time, a batch at a time."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.pruning import BATCH, HISTORIES, prune_tasks
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
        return max([history.prune(connection) for history in HISTORIES.values()]) == BATCH
