"""The workers, and whether they live."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.db.models.expressions import RawSQL

from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import Worker
from taskqueue.models.clock import DatabaseClock
from taskqueue.models.worker import WorkerStatus

ACTIVE, QUIET, DRAINING, LOST, STOPPED = "active", "quiet", "draining", "lost", "stopped"
LIVING = frozenset({ACTIVE, QUIET, DRAINING})
STATES = {
    WorkerStatus.RUNNING.value: ACTIVE,
    WorkerStatus.QUIET.value: QUIET,
    WorkerStatus.STOPPING.value: DRAINING,
    WorkerStatus.LOST.value: LOST,
    WorkerStatus.STOPPED.value: STOPPED,
}
"""What a worker said of itself last, in the words of the pages."""

# By the index of running leases, whose condition must stand in the text for SQLite to use it.
HELD = """
SELECT count(*)
FROM taskqueue_lease
WHERE taskqueue_lease.status = 'running' AND taskqueue_lease.worker_id = taskqueue_worker.name
"""


@dataclass(frozen=True, kw_only=True)
class WorkerFigures:
    """A worker by the database's clock."""

    id: int
    name: str
    host: str
    pid: int
    version: str
    """Of taskqueue."""
    queues: list[str]
    """Empty: all."""
    pool: str
    busy: int
    slots: int
    seen_at: datetime
    """Its last sign of life."""
    seen_seconds: float
    """Since then."""
    memory_bytes: int | None
    listens: bool | None
    """Whether enqueues wake it; None: not known, or on SQLite."""
    state: str
    """One of `active`, `quiet`, `draining`, `lost`, `stopped`."""
    trouble: str
    started_at: datetime
    request: str
    """What somebody asks of it; empty: nothing."""

    @property
    def is_alive(self) -> bool:
        """Whether it was seen within its lease, and has not ended."""
        return self.state in LIVING

    @property
    def takes_tasks(self) -> bool:
        """Whether it claims what is ready."""
        return self.state == ACTIVE

    def serves(self, queue_name: str) -> bool:
        """Whether the queue is among those that it takes from."""
        return not self.queues or queue_name in self.queues


def worker_figures(*, limit: int = 100) -> list[WorkerFigures]:
    """The living by name, then those that were lost or ended, the newest first; in one query."""
    order = Case(
        When(status__in=[WorkerStatus.LOST.value, WorkerStatus.STOPPED.value], then=Value(1)),
        default=Value(0),
        output_field=IntegerField(),
    )
    return sorted(map(_figures, _workers().order_by(order, "-seen_at")[:limit]), key=_rank)


def workers_after(name: str, *, limit: int) -> list[WorkerFigures]:
    """So many workers behind the one of that name, the living and the others by name."""
    return [_figures(each) for each in _workers().filter(name__gt=name).order_by("name")[:limit]]


def figures_of(name: str) -> WorkerFigures | None:
    """The worker of that name."""
    found = _workers().filter(name=name).first() if is_storable(name) else None
    return None if found is None else _figures(found)


def _workers() -> QuerySet[Any]:
    return Worker.objects.using(database_alias()).annotate(
        now=DatabaseClock(),
        held=RawSQL(HELD, (), output_field=IntegerField()),  # noqa: S611  (a constant)
    )


def living(workers: Iterable[WorkerFigures]) -> list[WorkerFigures]:
    """Those of them that live."""
    return [worker for worker in workers if worker.is_alive]


def _rank(worker: WorkerFigures) -> tuple[Any, ...]:
    if worker.is_alive:
        return (0, worker.name)
    return (1 if worker.state == LOST else 2, worker.seen_seconds)


def _figures(worker: Any) -> WorkerFigures:
    seen_seconds = max(0.0, (worker.now - worker.seen_at).total_seconds())
    state = STATES[worker.status]
    if state in LIVING and seen_seconds > worker.lease_seconds:
        # Nobody has marked it yet: that is a duty of those that live.
        state = LOST
    return WorkerFigures(
        id=worker.id,
        name=worker.name,
        host=worker.host,
        pid=worker.pid,
        version=str(worker.versions.get("taskqueue", "")),
        queues=sorted(worker.queues),
        pool=worker.pool,
        # It may hold more leases than it has slots, so as not to wait for the next.
        busy=min(worker.held, worker.concurrency),
        slots=worker.concurrency,
        seen_at=worker.seen_at,
        seen_seconds=seen_seconds,
        memory_bytes=worker.memory_bytes,
        listens=worker.listens,
        state=state,
        trouble=worker.trouble,
        started_at=worker.started_at,
        request=worker.request,
    )
