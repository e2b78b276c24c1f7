"""Merge rollups: those of processes into minutes, then quarters of an hour, then hours.

Counts are added to the totals before they are deleted: see `taskqueue.engine.totals`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.totals import HISTOGRAMS, SUMS, Totals, add_arrivals, add_figures
from taskqueue.models import Rollup

# The most rows that one transaction merges.
BATCH = 2000
KEPT = timedelta(days=90)


class Level(NamedTuple):
    """Rows of one resolution become rows of the next when they are old enough."""

    # In seconds; 0 for rows that processes write.
    source: int
    target: int
    age: timedelta


LEVELS = (
    # No process writes a row for longer than `tally.PART_SECONDS`.
    Level(0, 60, timedelta(seconds=90)),
    Level(60, 900, timedelta(hours=2)),
    Level(900, 3600, timedelta(hours=26)),
)
Key = tuple[datetime, str, str]


def merge_rollups(connection: BaseDatabaseWrapper) -> int:
    """Merge rows that are old enough, and delete those that are too old. Return how many rows.

    Adds enqueued tasks to the totals. A result of `BATCH` or more means that there is more to do.
    Rows that another worker is merging are left to that worker.
    """
    count = BATCH if add_arrivals(connection) else 0
    now = dialect_for(connection).now(connection)
    for level in LEVELS:
        try:
            with orm_transaction(connection):
                count += _merge(connection, level, now)
        except IntegrityError:  # Another worker has just inserted it.
            continue
    with orm_transaction(connection):
        old = Rollup.objects.using(connection.alias).filter(starts_at__lt=now - KEPT)
        chosen = list(old.order_by("starts_at").values_list("id", flat=True)[:BATCH])
        if chosen:
            old.filter(id__in=chosen).delete()
    return count + len(chosen)


def _merge(connection: BaseDatabaseWrapper, level: Level, now: datetime) -> int:
    rollups = Rollup.objects.using(connection.alias)
    old = rollups.filter(resolution=level.source, starts_at__lt=_floor(now - level.age, level))
    if connection.features.has_select_for_update_skip_locked:
        old = old.select_for_update(skip_locked=True)
    rows = list(old.order_by("starts_at", "id")[:BATCH])
    if not rows:
        return 0
    spans = {_key(row, level) for row in rows}
    there = rollups.filter(
        resolution=level.target, starts_at__in={starts_at for starts_at, _, _ in spans}
    )
    targets = {
        (row.starts_at, row.queue_name, row.name): row
        for row in there.select_for_update().order_by("id")
    }
    missing = {
        (starts_at, queue_name, name): Rollup(
            resolution=level.target, starts_at=starts_at, queue_name=queue_name, name=name
        )
        for starts_at, queue_name, name in spans - targets.keys()
    }
    for row in rows:
        key = _key(row, level)
        target = missing.get(key) or targets[key]
        add_figures(target, row)
        if row.slowest_seconds > target.slowest_seconds:
            target.slowest_seconds = row.slowest_seconds
            target.slowest_task_id = row.slowest_task_id
    changed = [targets[key] for key in spans if key in targets]
    rollups.bulk_update(changed, [*SUMS, *HISTOGRAMS, "slowest_seconds", "slowest_task_id"])
    rollups.bulk_create(missing.values())
    if level.source == 0:
        _add_to_totals(connection, rows)
    rollups.filter(id__in=[row.id for row in rows]).delete()
    return len(rows)


def _floor(moment: datetime, level: Level) -> datetime:
    seconds = int(moment.timestamp()) // level.target * level.target
    return datetime.fromtimestamp(seconds, UTC)


def _key(row: Rollup, level: Level) -> Key:
    return _floor(row.starts_at, level), row.queue_name, row.name


def _add_to_totals(connection: BaseDatabaseWrapper, rows: list[Rollup]) -> None:
    totals = Totals(connection)
    for row in sorted(rows, key=lambda row: (row.queue_name, row.name)):
        for total in totals.of(row.queue_name, row.name):
            add_figures(total, row)
    totals.write([*SUMS, *HISTOGRAMS])
