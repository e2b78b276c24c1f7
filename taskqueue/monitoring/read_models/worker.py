"""The workers, and whether they are alive."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.db.models.expressions import RawSQL

from taskqueue.declarations.serving import QueueChoice, definition_slots_text
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import Worker
from taskqueue.models.parts import DatabaseClock
from taskqueue.models.worker import WorkerRequest, WorkerStatus
from taskqueue.monitoring.read_models.base import about, from_row

ACTIVE, QUIET, DRAINING, LOST, STOPPED = "active", "quiet", "draining", "lost", "stopped"
LIVING = frozenset({ACTIVE, QUIET, DRAINING})
GONE = (WorkerStatus.LOST.value, WorkerStatus.STOPPED.value)
# The state for each status that a worker reported last.
STATES = {
    WorkerStatus.RUNNING.value: ACTIVE,
    WorkerStatus.QUIET.value: QUIET,
    WorkerStatus.STOPPING.value: DRAINING,
    WorkerStatus.LOST.value: LOST,
    WorkerStatus.STOPPED.value: STOPPED,
}

# By the index of running leases, whose condition must be written literally for SQLite.
HELD = """
SELECT count(*)
FROM taskqueue_lease
WHERE taskqueue_lease.status = 'running' AND taskqueue_lease.worker_id = taskqueue_worker.name
"""


@dataclass(frozen=True, kw_only=True)
class ShownWorker:
    """A worker by the database's clock."""

    id: int
    name: str
    host: str
    pid: int
    pool: str
    version: str = about("Version of taskqueue.")
    versions: dict[str, Any] = about("Versions of Python, Django and other packages.")
    queues: list[str] = about("Empty: all.", empty="all")
    weights: dict[str, float] = about("The weight of each queue; empty: all.", column="queues")
    is_strict: bool = about("Whether it empties its queues in their order.")
    queue_slots: dict[str, int] = about("The most of its slots that a queue may have, by name.")
    definition_slots: dict[str, int] = about("The same of a definition.")
    tags: list[str] = about("What it has that not every worker has, such as gpu.")
    busy: int = about("Slots in use.")
    slots: int = about(column="concurrency")
    state: str = about(choices=sorted(STATES.values()))
    is_alive: bool = about("Seen within its lease, and not ended.")
    lease_seconds: float
    started_at: datetime
    seen_at: datetime = about("Its last sign of life.")
    seen_seconds: float = about("Seconds since its last sign of life.", in_json=False)
    stopped_at: datetime | None
    memory_bytes: int | None
    cpu_percent: float | None = about(
        "Processor time that it and its children use, of one processor; null: not known."
    )
    listens: bool | None = about(
        "Whether enqueues wake it; false: it polls; null: not known, or on SQLite."
    )
    trouble: str = about("Keeps it from working; empty: nothing does.")
    request: str = about(
        "What it was last asked to do; empty: nothing.",
        choices=["", *(request.value for request in WorkerRequest)],
    )
    requested_at: datetime | None
    requested_by: str
    request_reason: str
    request_seen_at: datetime | None
    wanted: dict[str, Any] = about(
        "What was changed since it started: concurrency, queues, strict, definition_slots."
    )
    wanted_at: datetime | None
    wanted_by: str
    wanted_reason: str
    wanted_seen_at: datetime | None = about(
        "When it took up the latest change; null: there is none, or it has not yet."
    )

    @property
    def is_changing(self) -> bool:
        """Whether it has a requested change that it has not applied yet."""
        return self.wanted_at is not None and self.wanted_seen_at is None

    @property
    def wanted_concurrency(self) -> int:
        """The slots that it has, or will have after a requested change."""
        return int(self.wanted.get("concurrency", self.slots))

    @property
    def wanted_queues(self) -> str:
        """The queues that it serves or will serve, in the form of `--queues`."""
        weights = {name: int(weight) for name, weight in self.weights.items()}
        return str(self.wanted.get("queues", QueueChoice(weights, self.queue_slots)))

    @property
    def wanted_strict(self) -> bool:
        """Whether it empties its queues in their order, or will do so."""
        return bool(self.wanted.get("strict", self.is_strict))

    @property
    def wanted_definition_slots(self) -> str:
        """The slots for definitions that it has or will have, as for `--definition-slots`."""
        slots = definition_slots_text(self.definition_slots)
        return str(self.wanted.get("definition_slots", slots))

    @property
    def takes_tasks(self) -> bool:
        """Whether it claims ready tasks."""
        return self.state == ACTIVE

    def serves(self, queue_name: str) -> bool:
        """Return whether it serves the queue."""
        return not self.queues or queue_name in self.queues


def read_workers(*, limit: int = 100) -> list[ShownWorker]:
    """Return the live workers by name, then lost or ended ones, newest first; in one query."""
    order = Case(
        When(status__in=GONE, then=Value(1)), default=Value(0), output_field=IntegerField()
    )
    rows = worker_rows().order_by(order, "-seen_at")[:limit]
    return sorted(map(shown_worker, rows), key=_rank)


def workers_after(name: str, *, limit: int) -> list[ShownWorker]:
    """Return up to `limit` workers after the one of that name; live and other ones by name."""
    return list(map(shown_worker, worker_rows().filter(name__gt=name).order_by("name")[:limit]))


def worker_named(name: str) -> ShownWorker | None:
    """Return the worker of that name."""
    row = worker_rows().filter(name=name).first() if is_storable(name) else None
    return None if row is None else shown_worker(row)


def worker_rows() -> QuerySet[Any]:
    """Return the rows of workers, with everything that `shown_worker` needs."""
    return Worker.objects.using(database_alias()).annotate(
        now=DatabaseClock(),
        held=RawSQL(HELD, (), output_field=IntegerField()),  # noqa: S611  (a constant)
    )


def shown_worker(row: Any) -> ShownWorker:
    """Make the read model for a row of `worker_rows`."""
    seen_seconds = max(0.0, (row.now - row.seen_at).total_seconds())
    state = STATES[row.status]
    if state in LIVING and row.is_silent(row.now):
        # It is not marked as lost yet: that is a duty of live workers.
        state = LOST
    places = {name: place for place, name in enumerate(row.queue_order)}
    return from_row(
        ShownWorker,
        row,
        # In the worker's order, which JSON does not keep.
        weights=dict(sorted(row.queues.items(), key=lambda each: places.get(each[0], math.inf))),
        version=str(row.versions.get("taskqueue", "")),
        queues=sorted(row.queues),
        # It may hold more leases than it has slots, so as not to wait for the next task.
        busy=min(row.held, row.concurrency),
        state=state,
        is_alive=state in LIVING,
        seen_seconds=seen_seconds,
    )


def living(workers: Iterable[ShownWorker]) -> list[ShownWorker]:
    """Return those that are alive."""
    return [worker for worker in workers if worker.is_alive]


def _rank(worker: ShownWorker) -> tuple[Any, ...]:
    if worker.is_alive:
        return (0, worker.name)
    return (1 if worker.state == LOST else 2, worker.seen_seconds)
