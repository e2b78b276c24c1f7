"""Reading a history from the database and the files, in one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from taskqueue.engine.dialect import dialect_for
from taskqueue.models import Audit, Lease, Task
from tests.chaos import batch_rows, changes, feed_rows, limit_rows, workflow_rows
from tests.chaos.clients import read_client_log, whole_lines
from tests.chaos.history import (
    AuditRow,
    Bounds,
    Death,
    EffectRow,
    Enqueue,
    Fault,
    History,
    LeaseRow,
    Line,
    Sample,
    Stall,
    TaskRow,
    Term,
)
from tests.chaos.limit_rows import LimitChange
from tests.chaos.workflow_rows import VerbRow
from tests.sample.models import Effect


def gather(
    *,
    client_log: Path | None = None,
    enqueues: Iterable[Enqueue] = (),
    journals: Iterable[Path] = (),
    terms: Iterable[Term] = (),
    deaths: Iterable[Death] = (),
    faults: Iterable[Fault] = (),
    samples: Iterable[Sample] = (),
    stalls: Iterable[Stall] = (),
    lock_waits: Iterable[Stall] = (),
    verbs: Iterable[VerbRow] = (),
    event_log: Path | None = None,
    limit_changes: Iterable[LimitChange] = (),
    limit_repairs: int = 0,
    heard: feed_rows.Heard | None = None,
    is_over: bool = True,
    bounds: Bounds | None = None,
) -> History:
    """Read all that is known of the run. The files are read last: they hold at least as much."""
    bounds = bounds or Bounds()
    with snapshot():
        gathered_at = dialect_for(connection).now(connection).timestamp()
        has_changes = changes.are_recorded()
        recorded = changes.read_changes() if has_changes else ()
        tasks = tuple(_tasks())
        leases = tuple(_leases(bounds.lease))
        effects = tuple(_effects())
        audits = tuple(_audits())
        graphs: dict[str, Any] = {
            "workflows": tuple(workflow_rows.read_workflows()),
            "steps": tuple(workflow_rows.read_steps()),
            "edges": tuple(workflow_rows.read_edges()),
            "members": tuple(workflow_rows.read_members()),
            "notes": tuple(workflow_rows.read_notes()),
            "callbacks": tuple(workflow_rows.read_callbacks()),
            "repairs": workflow_rows.read_repairs(),
            "batches": tuple(batch_rows.read_batches()),
            "collected": tuple(batch_rows.read_collected()),
            "limited": tuple(limit_rows.read_limited()),
            "serving": tuple(limit_rows.read_serving()),
            "left_of_limits": tuple(limit_rows.read_left()),
            "feed": feed_rows.read_feed(heard),
        }
    return History(
        enqueues=read_client_log(client_log) if client_log else tuple(enqueues),
        tasks=tasks,
        leases=leases,
        effects=effects,
        lines=tuple(line for path in journals for line in read_journal(path)),
        audits=audits,
        changes=recorded,
        has_changes=has_changes,
        terms=tuple(terms),
        deaths=tuple(deaths),
        faults=tuple(faults),
        samples=tuple(samples),
        stalls=tuple(stalls),
        lock_waits=tuple(lock_waits),
        verbs=tuple(verbs),
        events=tuple(batch_rows.read_events(event_log)) if event_log else (),
        limit_changes=tuple(limit_changes),
        limit_repairs=limit_repairs,
        gathered_at=gathered_at,
        is_over=is_over,
        bounds=bounds,
        **graphs,
    )


@contextmanager
def snapshot() -> Iterator[None]:
    """One state of the database for all that is read; writers go on."""
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
    else:
        # Not Django's `atomic`, which would wait for the write lock and keep it.
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")


def read_journal(path: Path) -> Iterator[Line]:
    """What bodies appended with `tests.sample.worker_tasks.append`."""
    for line in whole_lines(path):
        task_id, attempt, pid, at, text = line.split(" ", 4)
        yield Line(task_id, int(attempt), int(pid), float(at), text)


def _tasks() -> Iterator[TaskRow]:
    read: dict[str, Callable[[Any], Any]] = {"retry_of": lambda task: task.retry_of_id}
    read["sequence"] = lambda task: task.metadata.get("sequence")
    for task in Task.objects.order_by("id").iterator():
        values = {name: read.get(name, _attribute(name))(task) for name in TaskRow._fields}
        yield TaskRow(**{name: _plain(value) for name, value in values.items()})


def _leases(usual: float) -> Iterator[LeaseRow]:
    own = {task.id: task.lease_duration for task in Task.objects.only("lease_duration").iterator()}
    for lease in Lease.objects.order_by("id").iterator():
        seconds = own.get(lease.task_id)
        values = {
            "worker_name": lease.worker_id,
            "lease_seconds": seconds.total_seconds() if seconds else usual,
        }
        for name in LeaseRow._fields:
            if name not in values:
                values[name] = getattr(lease, name)
        yield LeaseRow(**{name: _plain(value) for name, value in values.items()})


def _effects() -> Iterator[EffectRow]:
    rows = Effect.objects.order_by("id").values_list("task_id", "attempt", "note")
    return (EffectRow(str(task_id), attempt, note) for task_id, attempt, note in rows.iterator())


def _audits() -> Iterator[AuditRow]:
    rows = Audit.objects.order_by("id").values_list(*AuditRow._fields)
    return (AuditRow(*map(_plain, row)) for row in rows.iterator())


def _attribute(name: str) -> Callable[[Any], Any]:
    return lambda row: getattr(row, name)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    return str(value) if isinstance(value, UUID) else value
