"""What stands at this moment: of the queues, the workers, the schedules and the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.apps import apps

from taskqueue.engine.connections import database_alias
from taskqueue.engine.totals import MOST_LABELS, REST
from taskqueue.models import Queue, Schedule
from taskqueue.models.clock import DatabaseClock
from taskqueue.monitoring.counts import CAP
from taskqueue.monitoring.fleet import WorkerFigures
from taskqueue.monitoring.lane_statements import LANES
from taskqueue.monitoring.lanes import COUNTED, LEAST_CAP
from taskqueue.monitoring.metrics.counters import Labels
from taskqueue.monitoring.metrics.statements import SIZES, WAITING
from taskqueue.monitoring.reading import moment, read

STATUSES = ("blocked", "scheduled", "ready", "running", "retrying")
"""Of tasks that have not ended."""
MOST_QUEUES = 1_000
"""Queues that are looked at; the rest of the labels stands for those that have none."""


@dataclass
class Lane:
    """One queue, or those that share a label."""

    tasks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATUSES, 0))
    capped: set[str] = field(default_factory=set)
    """The statuses of which there may be more than were counted."""
    oldest_seconds: float = 0.0
    is_paused: bool = False
    workers: int = 0


class Lanes:
    """The queues by label."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self.found: dict[str, Lane] = {}

    def of(self, queue_name: str) -> Lane:
        """The queue's, or that of the rest."""
        return self.found.setdefault(self._labels.of(queue_name), Lane())

    def count(self, kinds: Mapping[str, str], rows: Iterable[Sequence[Any]], *, cap: int) -> None:
        """Add rows of a kind, a queue and a number, each kind counted up to the cap in all."""
        numbers: Counter[str] = Counter()
        for kind, queue_name, number, *_ in rows:
            self.of(queue_name).tasks[kinds.get(kind, kind)] += number
            numbers[kind] += number
        for kind, number in numbers.items():
            if number > cap:  # Of each queue there may be more.
                for lane in self.found.values():
                    lane.capped.add(kinds.get(kind, kind))


def lanes(
    labels: Labels, known: Iterable[str], workers: Iterable[WorkerFigures]
) -> dict[str, Lane]:
    """The queues by label, also those of the `known` in which nothing is."""
    rows, lanes = _rows(), Lanes(labels)
    for name in sorted({*known, *rows}):
        lanes.of(name)
    cap = max(LEAST_CAP, min(CAP, COUNTED // max(1, len(rows))))
    standing = read(LANES, now=moment(), limit=MOST_QUEUES, cap=cap + 1)
    for kind, name, number, seconds in standing:
        lane = lanes.of(name)
        lane.oldest_seconds = max(lane.oldest_seconds, seconds or 0.0)
        if kind == "ready":
            lane.tasks["ready"] += number
            if number > cap:
                lane.capped.add("ready")
    rest = [row for row in standing if row[0] != "ready"]
    lanes.count({"apart": "ready"}, [*rest, *read(WAITING, limit=cap + 1)], cap=cap)
    takers = [worker for worker in workers if worker.takes_tasks]
    for name, row in rows.items():
        lanes.of(name).is_paused |= row.is_paused_at(row.now)
    for label, lane in lanes.found.items():
        # Which queues share a label is not asked again: any worker may serve one of them.
        lane.workers = sum(label == REST or worker.serves(label) for worker in takers)
    return lanes.found


def _rows() -> dict[str, Any]:
    rows = Queue.objects.using(database_alias()).annotate(now=DatabaseClock()).order_by("id")
    return {row.name: row for row in rows[:MOST_QUEUES]}


@dataclass
class Timetable:
    """When a schedule ran last and runs next; None: never, or not as it stands."""

    last: datetime | None = None
    next: datetime | None = None


def timetables() -> dict[str, Timetable]:
    """The first schedules by name; behind them, together, the rest of the first thousand."""
    rows = (
        Schedule.objects.using(database_alias())
        .order_by("id")
        .only("name", "is_enabled", "removed_at", "paused_at", "last_nominal_at", "next_at")
    )
    found: dict[str, Timetable] = {}
    for place, row in enumerate(rows[:1_000]):
        is_resting = not row.is_active or row.paused_at is not None
        one = Timetable(row.last_nominal_at, None if is_resting else row.next_at)
        if place < MOST_LABELS:
            found[row.name] = one
            continue
        rest = found.setdefault(REST, Timetable())
        rest.last = max(filter(None, (rest.last, one.last)), default=None)
        rest.next = min(filter(None, (rest.next, one.next)), default=None)
    return found


def sizes() -> Mapping[str, int]:
    """Bytes of each table with its indexes; on SQLite of the whole file."""
    tables = [model._meta.db_table for model in apps.get_app_config("taskqueue").get_models()]
    return dict(read(SIZES, tables=sorted(set(tables))))
