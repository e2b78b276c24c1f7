"""The state of queues, schedules and tables now, under a bounded number of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.apps import apps

from taskqueue.engine import totals
from taskqueue.engine.connections import database_alias
from taskqueue.engine.statement import Statement
from taskqueue.engine.totals import DEFAULT, MOST_LABELS, REST
from taskqueue.models import Queue, Schedule
from taskqueue.models.clock import DatabaseClock
from taskqueue.monitoring.counts import CAP
from taskqueue.monitoring.queue_statements import LANES
from taskqueue.monitoring.read_models.queue import COUNTED, LEAST_CAP, Absence
from taskqueue.monitoring.read_models.worker import ShownWorker, living
from taskqueue.monitoring.reading import read


@dataclass
class Timetable:
    """The last and the next run of a schedule; None: there is none."""

    last: datetime | None = None
    next: datetime | None = None


def timetables() -> dict[str, Timetable]:
    """Return the runs of the first schedules by name, and of the rest of a thousand together."""
    rows = (
        Schedule.objects.using(database_alias())
        .order_by("id")
        .only("name", "is_enabled", "removed_at", "paused_at", "last_nominal_at", "next_at")
    )
    timetables: dict[str, Timetable] = {}
    for place, row in enumerate(rows[:1_000]):
        is_resting = not row.is_active or row.paused_at is not None
        one = Timetable(row.last_nominal_at, None if is_resting else row.next_at)
        if place < MOST_LABELS:
            timetables[row.name] = one
            continue
        rest = timetables.setdefault(REST, Timetable())
        rest.last = max(filter(None, (rest.last, one.last)), default=None)
        rest.next = min(filter(None, (rest.next, one.next)), default=None)
    return timetables


def sizes() -> Mapping[str, int]:
    """Return the bytes of each table with its indexes; on SQLite of the whole file."""
    tables = [model._meta.db_table for model in apps.get_app_config("taskqueue").get_models()]
    return dict(read(SIZES, tables=sorted(set(tables))))


# The first of each status by the index of what waits. PostgreSQL would rather read the primary key,
# expecting to meet enough of the status soon, which millions of other rows may come before: a range
# and an order that begins with the status leave it no other index. SQLite wants the condition of
# the index word by word.
WAITING = Statement.of("""
SELECT 'blocked', queue_name, count(*) FROM (
    SELECT queue_name FROM taskqueue_task
    WHERE status >= 'blocked' AND status <= 'blocked'
        AND status IN ('blocked', 'retrying', 'scheduled')
    ORDER BY status, id LIMIT %(limit)s
) AS blocked
GROUP BY queue_name
UNION ALL
SELECT 'scheduled', queue_name, count(*) FROM (
    SELECT queue_name FROM taskqueue_task
    WHERE status >= 'scheduled' AND status <= 'scheduled'
        AND status IN ('blocked', 'retrying', 'scheduled')
    ORDER BY status, id LIMIT %(limit)s
) AS scheduled
GROUP BY queue_name
UNION ALL
SELECT 'retrying', queue_name, count(*) FROM (
    SELECT queue_name FROM taskqueue_task
    WHERE status >= 'retrying' AND status <= 'retrying'
        AND status IN ('blocked', 'retrying', 'scheduled')
    ORDER BY status, id LIMIT %(limit)s
) AS retrying
GROUP BY queue_name
""")

# SQLite does not tell pages apart by table without reading them all.
SIZES = Statement(
    postgresql="""
SELECT relname, pg_total_relation_size(oid)
FROM pg_class
WHERE oid = ANY (SELECT to_regclass(name) FROM unnest(%(tables)s::text[]) AS name)
""",
    sqlite="""
SELECT 'database', pages.page_count * size.page_size
FROM pragma_page_count AS pages CROSS JOIN pragma_page_size AS size
""",
)


# Statuses of tasks that have not ended.
STATUSES = ("blocked", "scheduled", "ready", "running", "retrying")
# Queues that are read.
MOST_QUEUES = 1_000


@dataclass
class Lane:
    """The gauges of one queue, or of queues that share a label."""

    tasks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATUSES, 0))
    # Statuses with perhaps more tasks than were counted.
    capped: set[str] = field(default_factory=set)
    # Without tasks for named workers that are not running.
    oldest_seconds: float = 0.0
    # Of those.
    absent_seconds: float = 0.0
    is_paused: bool = False
    workers: int = 0

    def add(self, other: Lane) -> None:
        """Add the gauges of another queue with the same label."""
        for status, number in other.tasks.items():
            self.tasks[status] += number
        self.capped |= other.capped
        self.oldest_seconds = max(self.oldest_seconds, other.oldest_seconds)
        self.absent_seconds = max(self.absent_seconds, other.absent_seconds)
        self.is_paused |= other.is_paused


class Lanes:
    """The gauges of queues by name."""

    def __init__(self) -> None:
        self.found: dict[str, Lane] = {}

    def of(self, queue_name: str) -> Lane:
        """That queue's."""
        return self.found.setdefault(queue_name, Lane())

    def note_ages(self, rows: Iterable[Sequence[Any]], absence: Absence) -> None:
        """Note how long ready tasks have waited."""
        for _, name, _, seconds, names in rows:
            lane = self.of(name)
            if absence.keeps(name, names):
                lane.absent_seconds = max(lane.absent_seconds, seconds)
            else:
                lane.oldest_seconds = max(lane.oldest_seconds, seconds or 0.0)

    def count(self, kinds: Mapping[str, str], rows: Iterable[Sequence[Any]], *, cap: int) -> None:
        """Add rows of a kind, a queue and a number; each kind is counted up to the cap."""
        numbers: Counter[str] = Counter()
        for kind, queue_name, number, *_ in rows:
            self.of(queue_name).tasks[kinds.get(kind, kind)] += number
            numbers[kind] += number
        for kind, number in numbers.items():
            if number > cap:  # Of each queue there may be more.
                for lane in self.found.values():
                    lane.capped.add(kinds.get(kind, kind))

    def by_label(self, known: Set[str], meant: Set[str]) -> dict[str, Lane]:
        """Give a label to the most important queues: meant, paused, or with the most tasks.

        Idle ones come after those, the `known` first. The rest share a label.
        """

        def rank(name: str) -> tuple[object, ...]:
            lane = self.found[name]
            is_known = name in known
            return not (name in meant or lane.is_paused), -sum(lane.tasks.values()), not is_known

        names = sorted(self.found, key=lambda name: (name == REST, *rank(name), name))
        chosen = set(names[: totals.MOST_LABELS]) - {REST}
        labelled: dict[str, Lane] = {}
        for name, lane in self.found.items():
            labelled.setdefault(name if name in chosen else REST, Lane()).add(lane)
        return labelled


def lanes(known: Set[str], workers: Sequence[ShownWorker]) -> dict[str, Lane]:
    """Return the gauges by label, also of empty queues that are known or named by a worker."""
    rows, lanes = _rows(), Lanes()
    named = {name for worker in living(workers) for name in worker.queues}
    for name in {*known, *rows, *named}:
        lanes.of(name)
    cap = max(LEAST_CAP, min(CAP, COUNTED // max(1, len(rows))))
    standing = read(LANES, first="", limit=MOST_QUEUES, cap=cap + 1)
    lanes.note_ages([row for row in standing if row[0] != "running"], Absence(workers))
    for kind, name, number, *_ in standing:
        if kind == "ready":
            lane = lanes.of(name)
            lane.tasks["ready"] += number
            if number > cap:
                lane.capped.add("ready")
    rest = [row for row in standing if row[0] != "ready"]
    lanes.count({"apart": "ready"}, [*rest, *read(WAITING, limit=cap + 1)], cap=cap)
    for name, row in rows.items():
        lanes.of(name).is_paused |= row.is_paused_at(row.now)
    labelled = lanes.by_label(known, {*named, DEFAULT})
    takers = [worker for worker in workers if worker.takes_tasks]
    for label, lane in labelled.items():
        # Which queues share a label is not asked again: any worker may serve one of them.
        lane.workers = sum(label == REST or worker.serves(label) for worker in takers)
    return labelled


def _rows() -> dict[str, Any]:
    rows = Queue.objects.using(database_alias()).annotate(now=DatabaseClock()).order_by("id")
    return {row.name: row for row in rows[:MOST_QUEUES]}
