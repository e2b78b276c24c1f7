"""The number of ready tasks in each queue, recorded once a minute and kept for 90 days."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.depth_statement import WAITING
from taskqueue.engine.dialect import dialect_for, select
from taskqueue.engine.queue_tasks import deleted_with_tasks
from taskqueue.engine.rollups import KEPT, Level
from taskqueue.engine.statement import Fact, Moment
from taskqueue.engine.workers import remember_queues
from taskqueue.models import Depth, Queue

MINUTE = 60
# The most rows that one step merges or deletes.
BATCH = 2_000
LEVELS = (
    Level(MINUTE, 900, timedelta(hours=2)),
    Level(900, 3600, timedelta(hours=26)),
)
RESOLUTIONS = (MINUTE, *(level.target for level in LEVELS))
# How long the row of a deleted queue is kept, because statistics still list it.
GONE_AFTER = timedelta(hours=2)
# The most deleted queues that are searched for tasks, and the newest tasks of each status.
MOST_DELETED, MOST_LOOKED = 1_000, 2_000
# The queue name of a row that records only that somebody counted.
ALL = ""
IS_UNRECORDED = Fact(
    postgresql="""
        NOT EXISTS (
            SELECT 1
            FROM taskqueue_depth
            WHERE resolution = 60 AND queue_name = ''
                AND starts_at = date_trunc('minute', statement_timestamp())
        )
    """,
    sqlite="""
        NOT EXISTS (
            SELECT 1
            FROM taskqueue_depth
            WHERE resolution = 60 AND queue_name = ''
                AND starts_at = strftime('%%Y-%%m-%%d %%H:%%M:00', %(now)s)
        )
    """,
)


def _oldest(resolution: int, *, after: timedelta) -> Moment:
    """Return when the oldest row of a resolution will be this old."""
    oldest = f"FROM taskqueue_depth WHERE resolution = {resolution}"
    seconds = f"{after.total_seconds():.0f} seconds"
    return Moment(
        postgresql=f"SELECT min(starts_at) + interval '{seconds}' {oldest}",
        sqlite=f"SELECT strftime('%%Y-%%m-%%d %%H:%%M:%%f', min(starts_at), '{seconds}') {oldest}",
    )


# When there is something to merge or to delete next.
HAS_OLD_DEPTHS = (
    *(_oldest(level.source, after=level.age + timedelta(seconds=level.target)) for level in LEVELS),
    _oldest(RESOLUTIONS[-1], after=KEPT),
)


def record_depths(connection: BaseDatabaseWrapper, *, now: datetime | None = None) -> bool:
    """Record the depths unless a worker has done so this minute, and merge and delete old rows.

    Return whether there is more to merge or delete. `now` is for tests; the default is the
    database's clock. A deleted queue that has tasks gets its row back.
    """
    with orm_transaction(connection):
        moment = now or dialect_for(connection).now(connection)
        minute = _floor(moment, MINUTE)
        if not _is_recorded(connection, minute) and _takes_turn(connection, minute):
            found = _record(connection, minute)
            queues = Queue.objects.using(connection.alias)
            back = found | deleted_with_tasks(connection, queues=MOST_DELETED, most=MOST_LOOKED)
            queues.filter(deleted_at__isnull=False, name__in=back).update(deleted_at=None)
            queues.filter(deleted_at__lt=moment - GONE_AFTER).delete()
            known = queues.filter(name__in=list(found)).values_list("name", flat=True)
            remember_queues(connection, sorted(found - set(known)))
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


def _is_recorded(connection: BaseDatabaseWrapper, minute: datetime) -> bool:
    rows = Depth.objects.using(connection.alias)
    return rows.filter(resolution=MINUTE, starts_at=minute, queue_name=ALL).exists()


def _takes_turn(connection: BaseDatabaseWrapper, minute: datetime) -> bool:
    """Lock the latest record until the end of the transaction.

    Return False if another worker has it. Before the very first record there is nothing to lock:
    then several workers may count, and one of them writes.
    """
    rows = Depth.objects.using(connection.alias).filter(resolution=MINUTE, queue_name=ALL)
    latest = rows.order_by("-starts_at").values_list("id", flat=True).first()
    if latest is None:
        return True
    skips = connection.features.has_select_for_update_skip_locked
    if not list(rows.filter(id=latest).select_for_update(skip_locked=skips)):
        return False
    # The session that had the lock may have recorded this minute since the first look.
    return not _is_recorded(connection, minute)


def _record(connection: BaseDatabaseWrapper, minute: datetime) -> set[str]:
    """Record the ready tasks of each queue; return the queues that have any."""
    found: Counter[str] = Counter()
    capped: set[str] = set()
    for queue_name, number, is_capped in select(connection, WAITING):
        found[queue_name] += number
        capped |= {queue_name, ALL} if is_capped else set()
    Depth.objects.using(connection.alias).bulk_create(
        [
            Depth(
                resolution=MINUTE, starts_at=minute, queue_name=name, waiting=number,
                is_capped=name in capped,
            )
            for name, number in [(ALL, found.total()), *sorted(found.items())]
        ],
        ignore_conflicts=True,  # Another worker may count at the same time.
    )  # fmt: skip
    return set(found)


def _merge(connection: BaseDatabaseWrapper, level: Level, now: datetime) -> int:
    """Merge rows of one resolution into the next. Return how many. Repeating it changes nothing."""
    rows = Depth.objects.using(connection.alias)
    old = rows.filter(resolution=level.source, starts_at__lt=_floor(now - level.age, level.target))
    merged = list(old.order_by("resolution", "starts_at", "queue_name")[:BATCH])
    if not merged:
        return 0
    most: dict[tuple[datetime, str], tuple[int, bool]] = {}
    spans = {_floor(row.starts_at, level.target) for row in merged}
    there = rows.filter(resolution=level.target, starts_at__in=spans)
    for row in [*there, *merged]:
        key = _floor(row.starts_at, level.target), row.queue_name
        number, is_capped = most.get(key, (0, False))
        most[key] = max(number, row.waiting), is_capped or row.is_capped
    rows.bulk_create(
        [
            Depth(
                resolution=level.target, starts_at=starts_at, queue_name=name, waiting=number,
                is_capped=is_capped,
            )
            for (starts_at, name), (number, is_capped) in sorted(most.items())
        ],
        update_conflicts=True,
        unique_fields=["resolution", "starts_at", "queue_name"],
        update_fields=["waiting", "is_capped"],
    )  # fmt: skip
    rows.filter(id__in=[row.id for row in merged]).delete()
    return len(merged)


def _floor(moment: datetime, seconds: int) -> datetime:
    return datetime.fromtimestamp(int(moment.timestamp()) // seconds * seconds, UTC)
