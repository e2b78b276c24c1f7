"""Counters, and gauges of queues, schedules and tables, with a bounded number of labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from taskqueue.core.histogram import Histogram
from taskqueue.engine import totals
from taskqueue.engine.connections import database_alias
from taskqueue.engine.statement import Statement
from taskqueue.engine.totals import DEFAULT, MOST_LABELS, REST, SUMS, label_among
from taskqueue.models import Schedule
from taskqueue.models.rollup import NAME, QUEUE
from taskqueue.monitoring.read_models.queue import Absence, QueueRows
from taskqueue.monitoring.read_models.worker import ShownWorker, living
from taskqueue.monitoring.reading import read
from taskqueue.monitoring.rollups import summed

# The last and the next run of a schedule; None if there is none.
Timetable = tuple[datetime | None, datetime | None]


def timetables() -> dict[str, Timetable]:
    """Return the runs of the first schedules by name, and of up to a thousand others together."""
    rows = (
        Schedule.objects.using(database_alias())
        .order_by("id")
        .only("name", "is_enabled", "removed_at", "paused_at", "last_nominal_at", "next_at")
    )
    timetables: dict[str, Timetable] = {}
    for place, row in enumerate(rows[:1_000]):
        is_resting = not row.is_active or row.paused_at is not None
        last, upcoming = row.last_nominal_at, None if is_resting else row.next_at
        name = row.name if place < MOST_LABELS else REST
        if name in timetables:
            other_last, other_upcoming = timetables[name]
            last = max(filter(None, (last, other_last)), default=None)
            upcoming = min(filter(None, (upcoming, other_upcoming)), default=None)
        timetables[name] = last, upcoming
    return timetables


# The first rows of each status by the index of waiting tasks. PostgreSQL would prefer the primary
# key, expecting to find enough of the status soon, although millions of other rows may come first:
# with a range and an order that begin with the status it has no other index. SQLite needs the
# condition of the index word by word.
WAITING = Statement.of("""
SELECT 'blocked', queue_name, count(*), NULL, NULL FROM (
    SELECT queue_name FROM taskqueue_task
    WHERE status >= 'blocked' AND status <= 'blocked'
        AND status IN ('blocked', 'retrying', 'scheduled')
    ORDER BY status, id LIMIT %(limit)s
) AS blocked
GROUP BY queue_name
UNION ALL
SELECT 'scheduled', queue_name, count(*), NULL, NULL FROM (
    SELECT queue_name FROM taskqueue_task
    WHERE status >= 'scheduled' AND status <= 'scheduled'
        AND status IN ('blocked', 'retrying', 'scheduled')
    ORDER BY status, id LIMIT %(limit)s
) AS scheduled
GROUP BY queue_name
UNION ALL
SELECT 'retrying', queue_name, count(*), NULL, NULL FROM (
    SELECT queue_name FROM taskqueue_task
    WHERE status >= 'retrying' AND status <= 'retrying'
        AND status IN ('blocked', 'retrying', 'scheduled')
    ORDER BY status, id LIMIT %(limit)s
) AS retrying
GROUP BY queue_name
""")

# Statuses of unfinished tasks.
STATUSES = ("blocked", "scheduled", "ready", "running", "retrying")


@dataclass
class Lane:
    """The gauges of one queue, or of queues that share a label."""

    tasks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATUSES, 0))
    # Statuses of which there may be more tasks than were counted.
    capped: set[str] = field(default_factory=set)
    # The waiting times of the oldest ready task, and of the oldest that waits only for absent
    # workers.
    oldest_seconds: float = 0.0
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


def lanes(known: Set[str], workers: Sequence[ShownWorker], queues: QueueRows) -> dict[str, Lane]:
    """Return the gauges by label, including empty queues that are known or named by a worker."""
    rows, cap, standing = queues
    named = {name for worker in living(workers) for name in worker.queues}
    lanes: defaultdict[str, Lane] = defaultdict(Lane)
    for name in {*known, *rows, *named}:
        lanes[name].is_paused = name in rows and rows[name].is_paused_at(rows[name].now)
    absence, numbers = Absence(workers), Counter[str]()
    for kind, name, number, seconds, worker_names in [*standing, *read(WAITING, limit=cap + 1)]:
        lane, status = lanes[name], "ready" if kind in ("apart", "limited") else kind
        lane.tasks[status] += number
        if kind == "limited":
            lane.capped |= {status} if worker_names is not None else set()
            continue
        if kind == "ready":
            lane.capped |= {status} if number > cap else set()
        else:  # Counted for all queues together.
            numbers[status] += number
        if absence.keeps(name, worker_names):
            lane.absent_seconds = max(lane.absent_seconds, seconds)
        else:
            lane.oldest_seconds = max(lane.oldest_seconds, seconds or 0.0)
    for lane in lanes.values():  # Each queue may have more.
        lane.capped |= {status for status, number in numbers.items() if number > cap}
    labelled = _by_label(lanes, known, {*named, DEFAULT})
    takers = [worker for worker in workers if worker.takes_tasks]
    for label, lane in labelled.items():
        # Which queues share a label is not checked again: any worker may serve one of them.
        lane.workers = sum(label == REST or worker.serves(label) for worker in takers)
    return labelled


def _by_label(lanes: Mapping[str, Lane], known: Set[str], meant: Set[str]) -> dict[str, Lane]:
    """Give labels to the most important queues: configured or paused ones, or with the most tasks.

    Idle queues come after those, the `known` ones first. The rest share a label.
    """

    def rank(name: str) -> tuple[object, ...]:
        lane = lanes[name]
        is_foremost = name in meant or lane.is_paused
        return not is_foremost, -sum(lane.tasks.values()), name not in known, name

    chosen = set(sorted(lanes.keys() - {REST}, key=rank)[: totals.MOST_LABELS])
    labelled: defaultdict[str, Lane] = defaultdict(Lane)
    for name, lane in lanes.items():
        labelled[name if name in chosen else REST].add(lane)
    return dict(labelled)


# One statement, so that its snapshot sees each count in exactly one of the three. There are few
# totals, and only the rollups of the last minutes, which are not merged yet.
_COUNTED = """
SELECT
    'total', kind, label, enqueued, succeeded, failed, lost, stopped, returned,
    tasks_succeeded, tasks_failed, tasks_cancelled, run_seconds, wait_seconds,
    CAST(run_times AS text), CAST(wait_times AS text)
FROM taskqueue_total
UNION ALL
SELECT
    'rollup', queue_name, name, 0,
    CAST(sum(succeeded) AS bigint), CAST(sum(failed) AS bigint), CAST(sum(lost) AS bigint),
    CAST(sum(stopped) AS bigint), CAST(sum(returned) AS bigint),
    CAST(sum(tasks_succeeded) AS bigint), CAST(sum(tasks_failed) AS bigint),
    CAST(sum(tasks_cancelled) AS bigint),
    sum(run_seconds), sum(wait_seconds),
    string_agg(CAST(run_times AS text), ','), string_agg(CAST(wait_times AS text), ',')
FROM taskqueue_rollup
WHERE resolution = 0
GROUP BY queue_name, name
UNION ALL
SELECT
    'arrival', queue_name, name, CAST(sum(number) AS bigint), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', ''
FROM taskqueue_arrival
GROUP BY queue_name, name
"""
COUNTS = Statement(postgresql=_COUNTED, sqlite=_COUNTED.replace("string_agg", "group_concat"))

OUTCOMES = ("succeeded", "failed", "lost", "stopped", "returned")
ENDS = ("succeeded", "failed", "cancelled")


@dataclass
class Counted:
    """The counts of one queue or name."""

    # By column: `enqueued`, and the columns of `SUMS`.
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("enqueued", *SUMS), 0))
    run_times: Histogram = field(default_factory=Histogram)
    wait_times: Histogram = field(default_factory=Histogram)

    def add(self, figures: Sequence[Any]) -> None:
        """Add the figures of a row."""
        *sums, run_times, wait_times = figures
        for column, figure in zip(self.sums, sums, strict=True):
            self.sums[column] += figure
        self.run_times.update(summed(run_times))
        self.wait_times.update(summed(wait_times))


Counters = dict[str, Counted]


def counters(meant: frozenset[str] = frozenset({DEFAULT})) -> tuple[Counters, Counters]:
    """Return the counters of queues and of names by label, in one statement.

    `meant` are the queues that workers name.
    """
    rows = read(COUNTS)
    found: dict[str, defaultdict[str, Counted]] = {
        kind: defaultdict(Counted) for kind in (QUEUE, NAME)
    }
    for _, kind, label, *figures in (row for row in rows if row[0] == "total"):
        found[kind][label].add(figures)
    # With the label under which the totals will count it, because counts must not move to another
    # label later. A configured queue without a row has its own label until then.
    for source, queue_name, name, *figures in sorted(rows, key=lambda row: row[1:3]):
        if source != "total":
            found[QUEUE][label_among(queue_name, found[QUEUE].keys(), meant)].add(figures)
            found[NAME][label_among(name, found[NAME].keys())].add(figures)
    return dict(found[QUEUE]), dict(found[NAME])
