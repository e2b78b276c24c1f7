"""Forgetting operations: long after their end, for the audit keeps what was done."""

from __future__ import annotations

from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import installed
from taskqueue.engine.dialect import dialect_for
from taskqueue.models import Operation

KEPT = timedelta(days=90)
BATCH = 500


def prune_operations(connection: BaseDatabaseWrapper) -> int:
    """Delete, of the first operations, those that ended longer than `KEPT` ago."""
    with installed(connection):
        before = dialect_for(connection).now(connection) - KEPT
        rows = Operation.objects.using(connection.alias)
        ended = rows.filter(finished_at__isnull=False).order_by("id")
        first = list(ended.values_list("id", "finished_at")[:BATCH])
        old = [key for key, finished_at in first if finished_at and finished_at < before]
        return rows.filter(id__in=old).delete()[0] if old else 0
