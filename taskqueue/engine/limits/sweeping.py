"""Sweep: repair partitions that stand still although tasks could run; delete unused rows.

Every note is written by a trigger, and deleted under the lock of the rows that it is about. So if a
sweep finds anything, it is the result of an error in this package, or of rows changed by hand. The
sweep makes it a delay of some seconds instead of a task that waits forever.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Coalesce

from taskqueue.core.states import TaskStatus
from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.dialect import as_uuid, dialect_for, execute, select
from taskqueue.engine.limits.counting import count_repaired, count_saturated
from taskqueue.engine.limits.placing import take_places
from taskqueue.engine.statement import Fact, Statement
from taskqueue.models import Limit, Limiter, LimitNote, Partition, Queue, Slot, Task
from taskqueue.models.limit import PartitionState, Per

logger = logging.getLogger("taskqueue.engine")

# The most partitions to check, and rows to delete, in one turn.
BATCH = 500
# How long a partition is kept without tasks, and a limiter without use.
KEPT = timedelta(minutes=10)

# Whether a sweep has anything to look at: limits of queues, partitions that wait for places, or
# tasks under limits.
HAS_LIMITED = Fact.of("""
    EXISTS (SELECT 1 FROM taskqueue_queue WHERE limiter_id IS NOT NULL)
    OR EXISTS (SELECT 1 FROM taskqueue_partition WHERE waits_for IS NOT NULL)
    OR (
        SELECT partition
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 2
        ORDER BY partition
        LIMIT 1
    ) IS NOT NULL
""")
HAS_LIMIT_ROWS = Fact.of("""
    EXISTS (SELECT 1 FROM taskqueue_partition)
    OR EXISTS (SELECT 1 FROM taskqueue_limiter)
    OR EXISTS (SELECT 1 FROM taskqueue_slot)
""")
# Partitions with a ready task, in the order of their ids: a loose scan of the claim's index. One
# snapshot sees a task and its note or neither, and likewise a freed place and its note. So a
# partition that is closed here without a note would stay closed.
_LOST = """
WITH RECURSIVE ready (id) AS (
    SELECT (
        SELECT partition
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 2 AND partition > %(after)s
        ORDER BY partition
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT task.partition
        FROM taskqueue_task AS task
        WHERE task.status = 'ready' AND task.route = 2 AND task.partition > ready.id
        ORDER BY task.partition
        LIMIT 1
    )
    FROM ready
    WHERE ready.id IS NOT NULL
), found AS (
    SELECT id FROM ready WHERE id IS NOT NULL LIMIT {batch}
)
SELECT
    found.id,
    NOT EXISTS (SELECT 1 FROM taskqueue_limitnote WHERE subject = found.id) AND (
        own.id IS NULL
        OR own.state = 'empty'
        OR (
            own.state = 'waiting'
            AND own.waits_for IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM taskqueue_limitnote WHERE subject = own.waits_for)
            AND NOT EXISTS (
                SELECT 1
                FROM taskqueue_limiter AS limiter
                JOIN taskqueue_limit AS bound ON bound.id = limiter.limit_id
                WHERE limiter.id = own.waits_for AND (
                    COALESCE(bound.rate_override, bound.rate) = 0
                    OR COALESCE(bound.concurrency_override, bound.concurrency) <= (
                        SELECT count(*)
                        FROM taskqueue_slot AS slot
                        JOIN taskqueue_lease AS lease ON lease.id = slot.lease_id
                        WHERE slot.limiter_id = own.waits_for AND lease.finished_at IS NULL
                    )
                )
            )
        )
        OR (
            own.state = 'waiting' AND own.waits_for IS NULL AND own.opens_at IS NULL
            AND NOT EXISTS (
                SELECT 1
                FROM taskqueue_task AS holder
                WHERE holder.id = own.holder AND holder.finished_at IS NULL
            )
        )
    ),
    own.waits_for
FROM found
LEFT JOIN taskqueue_partition AS own ON own.id = found.id
ORDER BY found.id
"""
LOST = Statement.of(_LOST.format(batch=BATCH))
FORGOTTEN_SLOTS = Statement.of("""
    DELETE FROM taskqueue_slot
    WHERE (limiter_id, lease_id) IN (
        SELECT slot.limiter_id, slot.lease_id
        FROM taskqueue_slot AS slot
        LEFT JOIN taskqueue_lease AS lease ON lease.id = slot.lease_id
        WHERE lease.id IS NULL OR lease.finished_at IS NOT NULL
        LIMIT 500
    )
""")
FIRST = UUID(int=0)


class Sweep:
    """Goes through the partitions that have work, some in each turn."""

    def __init__(self) -> None:
        self._after = FIRST
        self.repairs = 0

    def step(self, connection: BaseDatabaseWrapper) -> bool:
        """Check the next partitions. Return whether there are more."""
        with orm_transaction(connection):
            if Queue.objects.using(connection.alias).filter(limiter_id__isnull=False).exists():
                take_places(connection)
        if self._after == FIRST:
            with orm_transaction(connection):
                count_saturated(connection)
        with orm_transaction(connection):
            rows = select(connection, LOST, after=self._after)
            lost = [(as_uuid(row[0]), row[2]) for row in rows if row[1]]
            if lost:
                subjects = {subject for pair in lost for subject in pair if subject is not None}
                LimitNote.objects.using(connection.alias).bulk_create(
                    LimitNote(subject=as_uuid(subject)) for subject in subjects
                )
                count_repaired(connection, len(lost))
        for id, _ in lost:
            logger.error("A partition stood still beside tasks and places partition=%s", id)
        self.repairs += len(lost)
        self._after = as_uuid(rows[-1][0]) if len(rows) == BATCH else FIRST
        return len(rows) == BATCH


def prune_limits(connection: BaseDatabaseWrapper) -> bool:
    """Delete partitions without tasks and limiters without use. Return whether there may be more.

    A later task makes them again.
    """
    alias = connection.alias
    with orm_transaction(connection):
        now = dialect_for(connection).now(connection)
        old = Partition.objects.using(alias).filter(
            state=PartitionState.EMPTY, changed_at__lt=now - KEPT, limits__isnull=False
        )
        ends = [TaskStatus.SUCCEEDED, TaskStatus.CANCELLED]
        holders = Task.objects.using(alias).filter(id=OuterRef("holder")).exclude(status__in=ends)
        noted = LimitNote.objects.using(alias).filter(subject=OuterRef("id"))
        ids = list(
            old.filter(~Exists(noted), ~Exists(holders))
            .select_for_update(skip_locked=True)
            .values_list("id", flat=True)[:BATCH]
        )
        Partition.objects.using(alias).filter(id__in=ids).delete()
        slots = Slot.objects.using(alias).filter(limiter_id=OuterRef("id"))
        waiting = Partition.objects.using(alias).filter(waits_for=OuterRef("id"))
        of_limit = Limit.objects.using(alias).annotate(
            window=Coalesce("seconds_override", "seconds")
        )
        kept = of_limit.filter(
            Q(window__gt=KEPT.seconds) | Q(per=Per.QUEUE.value), id=OuterRef("limit_id")
        )
        unused = Limiter.objects.using(alias).filter(
            ~Exists(slots), ~Exists(waiting), ~Exists(kept), used_at__lt=now - KEPT
        )
        held = unused.select_for_update(skip_locked=True).values_list("id", flat=True)[:BATCH]
        limiters = list(held)
        # Check again: a session that held their locks may have taken places, or closed partitions,
        # meanwhile.
        unused.filter(id__in=limiters).delete()
        forgotten = execute(connection, FORGOTTEN_SLOTS)
    return BATCH in (len(ids), len(limiters), forgotten)
