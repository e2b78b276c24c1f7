"""How many tasks are ready in each queue, recorded once a minute and kept for 90 days."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.dialect import dialect_for, select
from taskqueue.engine.rollups import KEPT, Level
from taskqueue.engine.statement import Statement
from taskqueue.engine.workers import remember_queues
from taskqueue.models import Depth, Queue

MINUTE = 60
# Tasks of a queue that are counted at most, and queues.
CAP, MOST_QUEUES = 50_000, 1_000
# Rows that one step merges or deletes.
BATCH = 2_000
LEVELS = (
    Level(MINUTE, 900, timedelta(hours=2)),
    Level(900, 3600, timedelta(hours=26)),
)
RESOLUTIONS = (MINUTE, *(level.target for level in LEVELS))
# The row of a deleted queue is kept for so long, for what its tasks came to still lists it.
GONE_AFTER = timedelta(hours=2)
# The queue of a row that tells only that somebody looked.
ALL = ""

# Ordinary tasks by a loose scan of the claim's index, queue by queue; the others, which are few, by
# the index of each kind. No order but that of an index, and no count without an end.
WAITING = Statement.of(f"""
    WITH RECURSIVE lane (queue_name, place) AS (
        SELECT min(queue_name), 1 FROM taskqueue_task WHERE status = 'ready' AND route = 0
        UNION ALL
        SELECT (
            SELECT min(queue_name)
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 0 AND queue_name > lane.queue_name
        ), place + 1
        FROM lane
        WHERE lane.queue_name IS NOT NULL AND place <= {MOST_QUEUES}
    )
    SELECT queue_name, (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM taskqueue_task AS task
            WHERE task.status = 'ready' AND task.route = 0 AND task.queue_name = lane.queue_name
            ORDER BY task.priority DESC
            LIMIT {CAP}
        ) AS counted
    )
    FROM lane
    WHERE queue_name IS NOT NULL
    UNION ALL
    SELECT queue_name, count(*)
    FROM (
        SELECT queue_name
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 2
        ORDER BY partition
        LIMIT {CAP}
    ) AS limited
    GROUP BY queue_name
    UNION ALL
    SELECT queue_name, count(*)
    FROM (
        SELECT queue_name
        FROM taskqueue_task
        WHERE route = 1 AND status IN ('ready', 'running') AND status = 'ready'
        ORDER BY pinned_to
        LIMIT {CAP}
    ) AS apart
    GROUP BY queue_name
""")  # noqa: S608  (of constants)


def record_depths(connection: BaseDatabaseWrapper, *, now: datetime | None = None) -> bool:
    """Record what waits, unless a worker has done so in this minute; merge and delete old rows.

    Whether there is more to merge or to delete. `now` is for tests; otherwise it is the clock of
    the database. A queue that has tasks, and has been deleted, gets its row back.
    """
    with orm_transaction(connection):
        moment = now or dialect_for(connection).now(connection)
        minute = _floor(moment, MINUTE)
        rows = Depth.objects.using(connection.alias)
        if not rows.filter(resolution=MINUTE, starts_at=minute, queue_name=ALL).exists():
            found: Counter[str] = Counter()
            for queue_name, number in select(connection, WAITING):
                found[queue_name] += number
            rows.bulk_create(
                [
                    Depth(resolution=MINUTE, starts_at=minute, queue_name=name, waiting=number)
                    for name, number in [(ALL, found.total()), *sorted(found.items())]
                ],
                ignore_conflicts=True,  # Another worker may look at the same time.
            )
            queues = Queue.objects.using(connection.alias)
            queues.filter(deleted_at__lt=moment - GONE_AFTER).delete()
            queues.filter(name__in=list(found), deleted_at__isnull=False).update(deleted_at=None)
            known = queues.filter(name__in=list(found)).values_list("name", flat=True)
            remember_queues(connection, sorted(found.keys() - set(known)))
    count = 0
    for level in LEVELS:
        with orm_transaction(connection):
            count = max(count, _merge(connection, level, moment))
    with orm_transaction(connection):
        old = Depth.objects.using(connection.alias).filter(
            resolution__in=RESOLUTIONS, starts_at__lt=moment - KEPT
        )
        chosen = list(old.values_list("id", flat=True)[:BATCH])
        if chosen:
            Depth.objects.using(connection.alias).filter(id__in=chosen).delete()
    return max(count, len(chosen)) == BATCH


def _merge(connection: BaseDatabaseWrapper, level: Level, now: datetime) -> int:
    """Merge rows of one resolution into the next; how many. Done twice, it comes to the same."""
    rows = Depth.objects.using(connection.alias)
    old = rows.filter(resolution=level.source, starts_at__lt=_floor(now - level.age, level.target))
    merged = list(old.order_by("resolution", "starts_at", "queue_name")[:BATCH])
    if not merged:
        return 0
    most: dict[tuple[datetime, str], int] = {}
    spans = {_floor(row.starts_at, level.target) for row in merged}
    there = rows.filter(resolution=level.target, starts_at__in=spans)
    for row in [*there, *merged]:
        key = _floor(row.starts_at, level.target), row.queue_name
        most[key] = max(most.get(key, 0), row.waiting)
    rows.bulk_create(
        [
            Depth(resolution=level.target, starts_at=starts_at, queue_name=name, waiting=number)
            for (starts_at, name), number in sorted(most.items())
        ],
        update_conflicts=True,
        unique_fields=["resolution", "starts_at", "queue_name"],
        update_fields=["waiting"],
    )
    rows.filter(id__in=[row.id for row in merged]).delete()
    return len(merged)


def _floor(moment: datetime, seconds: int) -> datetime:
    return datetime.fromtimestamp(int(moment.timestamp()) // seconds * seconds, UTC)
