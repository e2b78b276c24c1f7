"""Prune rows past their retention: in small steps by workers, or all at once by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.db.transaction import atomic

from taskqueue.engine.connections import installed
from taskqueue.engine.control.audit import Act, Person, audit
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.idempotency import KEPT as KEYS_KEPT
from taskqueue.engine.rollups import BATCH as MERGE_BATCH
from taskqueue.engine.rollups import merge_rollups
from taskqueue.engine.sessions import is_sqlite
from taskqueue.engine.statement import Moment
from taskqueue.engine.surplus import count_surplus, mark_surplus
from taskqueue.engine.workers import forget_gone
from taskqueue.engine.workflows.pruning import past_retention, prune_batch
from taskqueue.models import (
    Audit,
    Delivery,
    IdempotencyKey,
    Incident,
    Lease,
    Occurrence,
    Operation,
    Schedule,
    Task,
    Worker,
)
from taskqueue.models.schedule import OccurrenceStatus
from taskqueue.models.webhook import DeliveryStatus

# The most rows of one transaction.
BATCH = 500
# Counts stop at this number.
CAP = 10_000
GONE_FOR = timedelta(days=1)
ALL = Q()
Step = Callable[[BaseDatabaseWrapper], int]


@dataclass(frozen=True, kw_only=True)
class History:
    """Rows that are deleted in the order in which they were written, once they are old enough."""

    model: type[Model]
    # The column that says how old a row is.
    moment: str
    kept: timedelta
    # The rows that may be deleted at all.
    final: Q = ALL
    order: str = "id"

    def prune(self, connection: BaseDatabaseWrapper, *, limit: int = BATCH) -> int:
        """Delete those of the first rows that are too old. Return how many there were."""
        with installed(connection):
            old = self._old(connection, limit)
            return self._rows(connection).filter(pk__in=old).delete()[0] if old else 0

    def count(self, connection: BaseDatabaseWrapper) -> int:
        """Count the rows that are too old, up to `CAP`."""
        return len(self._old(connection, CAP))

    def _rows(self, connection: BaseDatabaseWrapper) -> QuerySet[Any]:
        return self.model._default_manager.using(connection.alias)

    def _old(self, connection: BaseDatabaseWrapper, limit: int) -> list[Any]:
        before = dialect_for(connection).now(connection) - self.kept
        rows = self._rows(connection).filter(self.final).order_by(self.order)
        first = rows.values_list("pk", self.moment)[:limit]
        return [key for key, moment in first if moment < before]


# `served_until` still ensures that no nominal time is served twice.
OCCURRENCES = History(
    model=Occurrence,
    moment="created_at",
    kept=timedelta(days=90),
    final=Q(status__in=[OccurrenceStatus.ENDED, OccurrenceStatus.SKIPPED]),
)
# The audit keeps what an operation did.
OPERATIONS = History(
    model=Operation,
    moment="finished_at",
    kept=timedelta(days=90),
    final=Q(finished_at__isnull=False),
)
IDEMPOTENCY_KEYS = History(
    model=IdempotencyKey, moment="created_at", kept=KEYS_KEPT, order="created_at"
)
INCIDENTS = History(
    model=Incident,
    moment="ended_at",
    kept=timedelta(days=90),
    final=Q(ended_at__isnull=False, is_settled=True),
    order="ended_at",
)
AUDIT = History(model=Audit, moment="at", kept=timedelta(days=366))
DELIVERIES = History(
    model=Delivery,
    moment="created_at",
    kept=timedelta(days=7),
    final=~Q(status=DeliveryStatus.WAITING),
)
HISTORIES = {
    "occurrences": OCCURRENCES,
    "operations": OPERATIONS,
    "idempotency_keys": IDEMPOTENCY_KEYS,
    "alerts": INCIDENTS,
    "deliveries": DELIVERIES,
    "audit": AUDIT,
}


NEXT_TASK = Moment.of("""
    SELECT min(prune_after) FROM taskqueue_task WHERE prune_after IS NOT NULL
""")
# Occurrences of rules with intervals below a second; such a rule has up to 1,728,000 a day.
FINE_KEPT = timedelta(hours=1)


def prune_fine_occurrences(connection: BaseDatabaseWrapper, *, limit: int = BATCH) -> int:
    """Delete a batch of occurrences of such rules older than an hour.

    Return how many there were.
    """
    with installed(connection):
        rules = Schedule.objects.using(connection.alias).filter(rule__interval__lt=1)
        fine = list(rules.values_list("id", flat=True))
        if not fine:
            return 0
        before = dialect_for(connection).now(connection) - FINE_KEPT
        rows = Occurrence.objects.using(connection.alias).filter(OCCURRENCES.final)
        number = 0
        for schedule_id in fine:
            old = rows.filter(schedule_id=schedule_id, nominal_at__lt=before).order_by("nominal_at")
            ids = list(old.values_list("id", flat=True)[: limit - number])
            number += rows.filter(id__in=ids).delete()[0] if ids else 0
        return number


def prune_tasks(connection: BaseDatabaseWrapper) -> int:
    """Delete a batch of tasks past their retention, with their attempts and log lines.

    This includes tasks beyond the number that their definition keeps.
    """
    mark_surplus(connection, limit=BATCH)
    return dialect_for(connection).prune(connection, limit=BATCH)


# The step that deletes a batch, by the name of the rows.
STEPS: dict[str, Step] = {
    "tasks": prune_tasks,
    **{name: history.prune for name, history in HISTORIES.items()},
    "workers": forget_gone,
}


def prunable(connection: BaseDatabaseWrapper) -> dict[str, int]:
    """Count the rows of each kind that `prune_all` would delete, each up to `CAP`."""
    now = dialect_for(connection).now(connection)
    counts = {name: history.count(connection) for name, history in HISTORIES.items()}
    old = len(_old_tasks(connection, now).values_list("id")[:CAP])
    return {
        "tasks": min(CAP, old + count_surplus(connection, limit=CAP)),
        **counts,
        "workers": _gone_workers(connection, now).count(),
        "workflows": len(past_retention(connection, now).values_list("id")[:CAP]),
    }


def prune_all(connection: BaseDatabaseWrapper, *, person: Person) -> dict[str, int]:
    """Delete everything past its retention, and merge rollups. Return how many rows of each kind.

    Each batch is a transaction, so an interruption loses nothing that was deleted before. It is
    audited if anything was deleted.
    """
    in_transaction = atomic(using=connection.alias)
    done = {
        name: _repeated(in_transaction(step), connection, batch=BATCH)
        for name, step in STEPS.items()
    }
    done["workflows"] = _prune_workflows(connection)
    done["rollups"] = _repeated(merge_rollups, connection, batch=MERGE_BATCH)
    if any(done[name] for name in (*STEPS, "workflows")):
        told = ", ".join(f"{number} {name}" for name, number in done.items() if number)
        audit(connection, "", "prune", [Act("", detail=told)], person=person)
    return done


def _prune_workflows(connection: BaseDatabaseWrapper) -> int:
    total = 0
    while (number := prune_batch(connection)) is not None:
        total += number
    return total


def _repeated(step: Step, connection: BaseDatabaseWrapper, *, batch: int) -> int:
    total = 0
    while (number := step(connection)) >= batch:
        total += number
    return total + number


def _old_tasks(connection: BaseDatabaseWrapper, now: datetime) -> QuerySet[Task]:
    old = Task.objects.using(connection.alias).filter(prune_after__lte=now)
    if is_sqlite(connection):
        # These queries skip holders of unique keys, as pruning does.
        still_held = Q(unique_until=None) | Q(unique_until__gt=now)
        old = old.exclude(Q(holds_unique_key=True) & still_held)
    return old.order_by("prune_after")


def _gone_workers(connection: BaseDatabaseWrapper, now: datetime) -> QuerySet[Worker]:
    leases = Lease.objects.using(connection.alias)
    running = leases.filter(status="running", worker_id=OuterRef("name"))
    gone = Worker.objects.using(connection.alias).filter(status__in=["stopped", "lost"])
    return gone.filter(~Exists(running), seen_at__lt=now - GONE_FOR)
