"""What pruning would delete at this moment, counted as far as it is cheap."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Exists, OuterRef, Q, QuerySet

from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.idempotency import KEPT as KEYS_KEPT
from taskqueue.engine.operations.pruning import KEPT as OPERATIONS_KEPT
from taskqueue.engine.pruning import AUDIT_KEPT
from taskqueue.engine.schedules.serving import KEPT as OCCURRENCES_KEPT
from taskqueue.engine.sessions import is_sqlite
from taskqueue.models import Audit, IdempotencyKey, Lease, Occurrence, Operation, Task, Worker
from taskqueue.models.occurrence import OccurrenceStatus

CAP = 10_000
"""Beyond this nobody counts."""
GONE_FOR = timedelta(days=1)


def prunable(connection: BaseDatabaseWrapper) -> dict[str, int]:
    """How many rows of each kind are past their time, up to `CAP`; by the names of `prune_all`.

    Nothing is written. What is deleted in the order of ids is looked at from the first on.
    """
    now = dialect_for(connection).now(connection)
    alias = connection.alias
    final = Q(status__in=[OccurrenceStatus.ENDED, OccurrenceStatus.SKIPPED])
    occurrences = Occurrence.objects.using(alias).filter(final)
    operations = Operation.objects.using(alias).filter(finished_at__isnull=False)
    keys = IdempotencyKey.objects.using(alias).filter(created_at__lt=now - KEYS_KEPT)
    return {
        "tasks": len(_tasks(connection, now).values_list("id")[:CAP]),
        "occurrences": _older(occurrences, "created_at", now - OCCURRENCES_KEPT),
        "operations": _older(operations, "finished_at", now - OPERATIONS_KEPT),
        "idempotency_keys": len(keys.order_by("created_at").values_list("id")[:CAP]),
        "audit": _older(Audit.objects.using(alias).all(), "at", now - AUDIT_KEPT),
        "workers": _gone_workers(alias, now).count(),
    }


def _tasks(connection: BaseDatabaseWrapper, now: datetime) -> QuerySet[Task]:
    old = Task.objects.using(connection.alias).filter(prune_after__lte=now)
    if is_sqlite(connection):
        # There a holder of a unique key is passed over as it is pruned.
        still_held = Q(unique_until=None) | Q(unique_until__gt=now)
        old = old.exclude(Q(holds_unique_key=True) & still_held)
    return old.order_by("prune_after")


def _older(rows: QuerySet[Any], column: str, before: datetime) -> int:
    moments = rows.order_by("id").values_list(column, flat=True)[:CAP]
    return sum(moment < before for moment in moments)


def _gone_workers(alias: str, now: datetime) -> QuerySet[Worker]:
    running = Lease.objects.using(alias).filter(status="running", worker_id=OuterRef("name"))
    gone = Worker.objects.using(alias).filter(status__in=["stopped", "lost"])
    return gone.filter(~Exists(running), seen_at__lt=now - GONE_FOR)
