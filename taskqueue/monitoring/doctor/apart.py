"""Tasks that no worker which is there may take: they name others, or want more than there are."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.models import Lease, Task
from taskqueue.monitoring.absence import Absence
from taskqueue.monitoring.doctor.finding import LATE, PROBLEM, QUEUES, Finding
from taskqueue.monitoring.doctor.words import duration, listed
from taskqueue.monitoring.fleet import WorkerFigures
from taskqueue.monitoring.searching.streams import IS_APART, literal
from taskqueue.states import LeaseStatus, TaskStatus

MOST = 10_000
"""Tasks that are looked at; twice, so that many of several workers hide none of named ones."""
MOST_CHECKED = 100
"""Of those that too few workers may be there for: who has run them is asked of the oldest."""
FIELDS = (
    "id", "queue_name", "status", "run_after", "worker_names", "workers", "broadcast", "open_slots",
)  # fmt: skip
FREE, PINNED = {"pinned_to": ""}, {"pinned_to__gt": ""}
TAKEN = (LeaseStatus.RUNNING, LeaseStatus.SUCCEEDED)


def out_of_reach(
    connection: BaseDatabaseWrapper,
    now: datetime,
    *,
    workers: Sequence[WorkerFigures],
    passing: Collection[str],
) -> Iterator[Finding]:
    """By queue; `passing` are those about which something else has been said already."""
    takers = [worker for worker in workers if worker.takes_tasks]
    absence = Absence(takers)
    absent: defaultdict[str, list[Any]] = defaultdict(list)
    short: list[Any] = []
    rows, is_capped = _waiting(connection)
    for row in sorted(rows, key=lambda row: row.run_after):
        if row.run_after > now - LATE or row.queue_name in passing or not _is_open(row):
            continue
        if row.worker_names is not None and absence.keeps(
            row.queue_name, json.dumps(row.worker_names)
        ):
            absent[row.queue_name].append(row)
        elif row.workers > 1 and not row.broadcast and len(_able(row, takers)) < row.workers:
            short.append(row)
    for queue_name, tasks in absent.items():
        yield _of_absent(queue_name, tasks, now, is_capped)
    for queue_name, tasks in _really_short(connection, short[:MOST_CHECKED], takers).items():
        yield _of_short(queue_name, tasks, now, is_capped or len(short) > MOST_CHECKED)


def _waiting(connection: BaseDatabaseWrapper) -> tuple[list[Any], bool]:
    """The first of those for several workers, and of those for one by its name."""
    apart = Task.objects.using(connection.alias).filter(literal(IS_APART[connection.vendor]))
    ordered = apart.order_by("pinned_to", "queue_name").values_list(*FIELDS, named=True)
    halves = [list(ordered.filter(**which)[:MOST]) for which in (FREE, PINNED)]
    return [row for half in halves for row in half], any(len(half) == MOST for half in halves)


def _is_open(row: Any) -> bool:
    """Whether a worker may take it still; a new broadcast goes to whoever is there."""
    if row.workers > 1:
        return bool(row.open_slots)
    return bool(row.status == TaskStatus.READY and row.workers)


def _able(row: Any, takers: Sequence[WorkerFigures]) -> set[str]:
    """Workers that may run it, or have."""
    serving = {worker.name for worker in takers if worker.serves(row.queue_name)}
    return serving if row.worker_names is None else serving & set(row.worker_names)


def _really_short(
    connection: BaseDatabaseWrapper, rows: Sequence[Any], takers: Sequence[WorkerFigures]
) -> dict[str, list[Any]]:
    """Those that too few are left for, by queue: who has run one, or runs it, is not the next."""
    taken: defaultdict[Any, set[str]] = defaultdict(set)
    if rows:
        leases = Lease.objects.using(connection.alias).filter(
            task_id__in=[row.id for row in rows], is_shared=True, status__in=TAKEN
        )
        for task_id, worker in leases.values_list("task_id", "worker_id"):
            taken[task_id].add(str(worker))
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for row in rows:
        if len(_able(row, takers) - taken[row.id]) < row.open_slots:
            found[row.queue_name].append(row)
    return found


def _of_absent(queue_name: str, rows: Sequence[Any], now: datetime, is_capped: bool) -> Finding:
    oldest, names = rows[0], listed(rows[0].worker_names)
    return Finding(
        check=QUEUES,
        severity=PROBLEM,
        subject=queue_name,
        seen=f"In the queue {queue_name} tasks wait for named workers that are away, or take "
        f"nothing: {_number(rows, is_capped)}. The first is {oldest.id}, for {_ago(oldest, now)}: "
        f"it waits for {names}.",
        remedy=f"Start a worker with --name {names}, or cancel what no other may run. See "
        f"manage.py taskqueue why {oldest.id}.",
    )


def _of_short(queue_name: str, rows: Sequence[Any], now: datetime, is_capped: bool) -> Finding:
    oldest = rows[0]
    return Finding(
        check=QUEUES,
        severity=PROBLEM,
        subject=queue_name,
        seen=f"In the queue {queue_name} tasks wait for more workers than are there: "
        f"{_number(rows, is_capped)}. The first is {oldest.id}, for {_ago(oldest, now)}: of its "
        f"{oldest.workers} workers it still waits for {oldest.open_slots}.",
        remedy="Start more workers that may take from the queue, each under a name of its own, or "
        f"cancel it. See manage.py taskqueue why {oldest.id}.",
    )


def _number(rows: Sequence[Any], is_capped: bool) -> str:
    return f"{len(rows):,}{'+' if is_capped else ''}"


def _ago(row: Any, now: datetime) -> str:
    return duration((now - row.run_after).total_seconds())
