"""Merging rollups, and marking attempts that seem wedged."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine import wedged
from taskqueue.engine.rollups import BATCH, merge_rollups
from taskqueue.worker.duties.duty import Timed, short_transaction


class MergeRollups(Timed):
    """Merges counts into longer spans and into the totals."""

    interval = 60.0

    def run(self, connection: BaseDatabaseWrapper) -> bool:
        return merge_rollups(connection) >= BATCH


class MarkWedged(Timed):
    """Marks attempts that give no sign of life for far longer than usual."""

    interval = 60.0

    def run(self, connection: BaseDatabaseWrapper) -> bool:
        with short_transaction(connection):
            wedged.mark_wedged(connection)
        return False
