"""Queues: their waiting and running tasks, and whether workers serve them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import QuerySet

from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.statement import Statement
from taskqueue.models import Queue
from taskqueue.models.parts import DatabaseClock
from taskqueue.monitoring.counts import CAP, Count
from taskqueue.monitoring.queue_statements import LANES
from taskqueue.monitoring.queue_throughput import FINISHED
from taskqueue.monitoring.read_models.base import about, from_row
from taskqueue.monitoring.read_models.limit import ShownNumbers, numbers_of_queues
from taskqueue.monitoring.read_models.worker import ShownWorker, living, read_workers
from taskqueue.monitoring.reading import read


class Absence:
    """Knows which named workers are away."""

    def __init__(self, workers: Iterable[ShownWorker]) -> None:
        self._takers = {worker.name: worker for worker in workers if worker.takes_tasks}

    def keeps(self, queue_name: str, names: str | None) -> bool:
        """Return whether a task of the queue waits for these workers, none of which takes it.

        `names` is JSON text; None if any worker may take it.
        """
        if names is None:
            return False
        there = [self._takers[name] for name in json.loads(names) if name in self._takers]
        return not any(worker.serves(queue_name) for worker in there)


# Steps of five minutes in an hour.
STEPS = 12
# The ready tasks that are counted in all queues together: the more queues, the fewer of each.
COUNTED = 100_000
LEAST_CAP = 1_000


@dataclass(frozen=True, kw_only=True)
class ShownQueue:
    """A queue at this moment."""

    name: str
    waiting: int = about(
        f"Ready tasks, counted up to {CAP:,}; with many queues the count is capped sooner."
    )
    is_waiting_capped: bool = about("Whether there may be more.")
    oldest_seconds: float | None = about("How long the oldest ready task has waited.")
    reachable_seconds: float | None = about(
        "The same without tasks that wait for workers which are all away, or under limits.",
        in_json=False,
    )
    running: int = about("Tasks that workers hold, up to as many as they can run.")
    slots: int = about("Of the workers that take from it.")
    is_served: bool = about("Whether a live worker takes from it.")
    finished_last_hour: int = about("Tasks that ended within the last hour.")
    finished_lately: list[int] = about(
        "The same in steps of five minutes, oldest first.", in_json=False
    )
    attempts_recently: int = about("Attempts that ended within 15 minutes.", in_json=False)
    failed_recently: int = about(
        "Those of them that failed or were lost, but for tasks of taskqueue itself.", in_json=False
    )
    is_paused: bool
    paused_at: datetime | None
    paused_until: datetime | None
    paused_by: str
    pause_reason: str
    limit: ShownNumbers | None = about("What people have limited it to; null: it has no limit.")

    @property
    def waiting_count(self) -> Count:
        """The number of ready tasks, formatted."""
        return Count(self.waiting, self.is_waiting_capped)


@dataclass
class _Counts:
    """The figures of a queue from the statements."""

    waiting: int = 0
    cap: int = CAP
    oldest_seconds: float | None = None
    reachable_seconds: float | None = None
    held: int = 0
    # Whether there may be more ready tasks than were counted.
    is_more: bool = False
    finished_lately: list[int] = field(default_factory=lambda: [0] * STEPS)
    attempts_recently: int = 0
    failed_recently: int = 0

    @property
    def has_tasks(self) -> bool:
        """Whether any task waits or runs."""
        return bool(self.waiting or self.held)

    def note_age(self, seconds: float, *, is_reachable: bool) -> None:
        self.oldest_seconds = max(self.oldest_seconds or 0.0, seconds)
        if is_reachable:
            self.reachable_seconds = max(self.reachable_seconds or 0.0, seconds)


class QueueRows(NamedTuple):
    """The queues that have a row, and the counts of `queue_statements.LANES`."""

    by_name: dict[str, Any]
    # The most ready tasks that are counted of each queue; a number in `lanes` may be one more.
    cap: int
    lanes: list[tuple[Any, ...]]


def read_queue_rows(*, limit: int) -> QueueRows:
    """Return the rows from which several read models of queues are made."""
    rows = _by_name(_rows()[:limit])
    cap = max(LEAST_CAP, min(CAP, COUNTED // max(1, len(rows))))
    return QueueRows(rows, cap, read(LANES, first="", limit=limit, cap=cap + 1))


def read_queues(
    *,
    limit: int = 100,
    workers: Sequence[ShownWorker] | None = None,
    known: QueueRows | None = None,
) -> list[ShownQueue]:
    """Return the queues by name. `workers` and rows that have been read save queries."""
    if workers is None:
        workers = read_workers(limit=1_000)
    rows, cap, lanes = known or read_queue_rows(limit=limit)
    counts = _counts(lanes, cap=cap, absence=Absence(workers))
    names = sorted(_names(rows, counts) | _served(workers))[:limit]
    return [_shown(name, counts[name], rows.get(name), workers) for name in names]


# Consecutive names after a given one, sorted by the database, which also compares the cursors of
# pages.
NEXT = Statement(
    postgresql="""
        SELECT name
        FROM json_array_elements_text(%(names)s::json) AS found (name)
        WHERE name > %(after)s
        ORDER BY name
        LIMIT %(limit)s
    """,
    sqlite="""
        SELECT value
        FROM json_each(%(names)s)
        WHERE value > %(after)s
        ORDER BY value
        LIMIT %(limit)s
    """,
)


def queues_after(name: str, *, limit: int) -> list[ShownQueue]:
    """Return up to `limit` queues after the one of that name, in the database's order."""
    workers = read_workers(limit=1_000)
    rows = _by_name(_rows().filter(name__gt=name)[:limit])
    cap = max(LEAST_CAP, min(CAP, COUNTED // limit))
    # One more, because the first may be the queue of that name itself.
    lanes = read(LANES, first=name, limit=limit + 1, cap=cap + 1)
    counts = _counts(lanes, cap=cap, absence=Absence(workers))
    names = json.dumps([*_names(rows, counts) | _served(workers)])
    following = [queue for (queue,) in read(NEXT, names=names, after=name, limit=limit)]
    return [_shown(queue, counts[queue], rows.get(queue), workers) for queue in following]


def queue_named(name: str) -> ShownQueue | None:
    """Return the queue of that name; None if no task or worker has or had it."""
    if not is_storable(name):
        return None
    workers = read_workers(limit=1_000)
    row = _rows().filter(name=name).first()
    lanes = read(LANES, first=name, limit=1, cap=CAP + 1)
    counts = _counts(lanes, cap=CAP, absence=Absence(workers))
    # Before its first task, a queue has a row only if somebody has paused or limited it.
    is_known = name in _names({} if row is None else {name: row}, counts)
    if not is_known and name not in _served(workers):
        return None
    return _shown(name, counts[name], row, workers)


def _rows() -> QuerySet[Any]:
    return Queue.objects.using(database_alias()).annotate(now=DatabaseClock()).order_by("name")


def _by_name(rows: Iterable[Any]) -> dict[str, Any]:
    return {row.name: row for row in rows}


def _names(rows: dict[str, Any], counts: dict[str, _Counts]) -> set[str]:
    """Return the names of existing queues; ended tasks do not keep a deleted queue."""
    gone = {name for name, row in rows.items() if row.deleted_at is not None}
    return {*rows, *counts} - {
        name for name in gone if name not in counts or not counts[name].has_tasks
    }


def _served(workers: Iterable[ShownWorker]) -> set[str]:
    """Return the queues that live workers name: before their first task they have no row."""
    return {name for each in living(workers) for name in each.queues}


def _counts(
    lanes: Iterable[tuple[Any, ...]], *, cap: int, absence: Absence
) -> defaultdict[str, _Counts]:
    """Return the counts by queue, including queues with tasks that no worker has seen yet."""
    counts: defaultdict[str, _Counts] = defaultdict(lambda: _Counts(cap=cap))
    for kind, name, number, seconds, names in lanes:
        if kind == "running":
            counts[name].held += number
            continue
        counts[name].waiting += number
        if kind == "limited":  # These tasks wait because somebody wants that.
            counts[name].is_more = counts[name].is_more or names is not None
            counts[name].note_age(seconds, is_reachable=False)
        else:
            counts[name].note_age(seconds, is_reachable=not absence.keeps(name, names))
    for name, ago, tasks, attempts, failed in read(FINISHED):
        if 0 <= ago < STEPS:
            counts[name].finished_lately[STEPS - 1 - ago] += int(tasks)
        counts[name].attempts_recently += int(attempts)
        counts[name].failed_recently += int(failed)
    return counts


def _shown(
    name: str, counts: _Counts, row: Any | None, workers: Sequence[ShownWorker]
) -> ShownQueue:
    serving = [worker for worker in workers if worker.takes_tasks and worker.serves(name)]
    slots = sum(worker.slots for worker in serving)
    paused = row if row is not None and row.is_paused_at(row.now) else None
    is_limited = row is not None and row.limiter_id is not None
    if is_limited:  # Its tasks wait because somebody wants that.
        counts.reachable_seconds = None
    return from_row(
        ShownQueue,
        counts,
        name=name,
        waiting=min(counts.waiting, counts.cap),
        is_waiting_capped=counts.is_more or counts.waiting > counts.cap,
        # Workers hold more leases than they run, so as not to wait for the next task.
        running=min(counts.held, slots) if slots else counts.held,
        slots=slots,
        is_served=bool(serving),
        finished_last_hour=sum(counts.finished_lately),
        is_paused=paused is not None,
        paused_at=paused and paused.paused_at,
        paused_until=paused and paused.paused_until,
        paused_by=paused.paused_by if paused else "",
        pause_reason=paused.pause_reason if paused else "",
        limit=numbers_of_queues([name]).get(name) if is_limited else None,
    )
