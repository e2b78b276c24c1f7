"""Tasks that no running worker takes: for others, for more than are running, or unknown to them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.core.retries import class_path
from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.engine.connections import database_alias
from taskqueue.engine.dialect import as_uuid
from taskqueue.engine.statement import Statement
from taskqueue.exceptions import UnknownTask
from taskqueue.models import Lease, Task
from taskqueue.models.parts import DatabaseClock
from taskqueue.monitoring.notice import ERROR, WARNING, Code, Notice
from taskqueue.monitoring.read_models.queue import Absence
from taskqueue.monitoring.read_models.worker import ShownWorker
from taskqueue.monitoring.reading import read
from taskqueue.monitoring.searching.streams import IS_APART, literal

# Time for which a worker may be gone, as in a restart.
LATE = timedelta(minutes=1)
# Tasks with too few workers whose attempts are read, the oldest first.
MOST_CHECKED = 100
MOST_NAMED = 5
FIELDS = (
    "id", "queue_name", "status", "run_after", "worker_names", "workers", "broadcast", "open_slots",
    "now",
)  # fmt: skip
FREE, PINNED = {"pinned_to": ""}, {"pinned_to__gt": ""}
TAKEN = (LeaseStatus.RUNNING, LeaseStatus.SUCCEEDED)


def out_of_reach(
    workers: Sequence[ShownWorker], *, passing: Collection[str], most: int
) -> Iterator[Notice]:
    """Yield notices by queue, except queues in `passing`, which have other notices.

    So many are looked at, twice: many tasks of several workers hide none of named ones.
    """
    takers = [worker for worker in workers if worker.takes_tasks]
    absence = Absence(takers)
    absent: defaultdict[str, list[Any]] = defaultdict(list)
    short: list[Any] = []
    rows, is_capped = _waiting(most)
    for row in sorted(rows, key=lambda row: row.run_after):
        if row.run_after > row.now - LATE or row.queue_name in passing or not _is_open(row):
            continue
        if row.worker_names is not None and absence.keeps(
            row.queue_name, json.dumps(row.worker_names)
        ):
            absent[row.queue_name].append(row)
        elif row.workers > 1 and not row.broadcast and len(_able(row, takers)) < row.workers:
            short.append(row)
    for tasks in absent.values():
        yield _notice("absent_workers", tasks, is_capped, detail=_listed(tasks[0].worker_names))
    for tasks in _really_short(short[:MOST_CHECKED], takers).values():
        yield _notice(
            "too_few_workers",
            tasks,
            is_capped or len(short) > MOST_CHECKED,
            total=tasks[0].workers,
            detail=str(tasks[0].open_slots),
        )


def _notice(code: Code, rows: Sequence[Any], is_capped: bool, **more: Any) -> Notice:
    oldest = rows[0]
    return Notice(
        code,
        ERROR,
        oldest.queue_name,
        count=len(rows),
        is_capped=is_capped,
        example=str(oldest.id),
        seconds=(oldest.now - oldest.run_after).total_seconds(),
        **more,
    )


def _listed(names: Sequence[object]) -> str:
    """Return names such as `a, b, …`."""
    shown = [str(name) for name in names[:MOST_NAMED]]
    return ", ".join([*shown, "…"] if len(names) > MOST_NAMED else shown)


def _waiting(most: int) -> tuple[list[Any], bool]:
    """Return the first tasks for several workers, and for a named worker."""
    apart = Task.objects.using(database_alias()).filter(literal(IS_APART))
    timed = apart.annotate(now=DatabaseClock())
    ordered = timed.order_by("pinned_to", "queue_name").values_list(*FIELDS, named=True)
    halves = [list(ordered.filter(**which)[:most]) for which in (FREE, PINNED)]
    return [row for half in halves for row in half], any(len(half) == most for half in halves)


def _is_open(row: Any) -> bool:
    """Whether it still needs a worker; a new broadcast takes all that are running."""
    if row.workers > 1:
        return bool(row.open_slots)
    return bool(row.status == TaskStatus.READY and row.workers)


def _able(row: Any, takers: Sequence[ShownWorker]) -> set[str]:
    """Return the workers that may run it, or have run it."""
    serving = {worker.name for worker in takers if worker.serves(row.queue_name)}
    return serving if row.worker_names is None else serving & set(row.worker_names)


def _really_short(rows: Sequence[Any], takers: Sequence[ShownWorker]) -> dict[str, list[Any]]:
    """Return tasks with too few workers by queue, without workers that have run them."""
    taken: defaultdict[Any, set[str]] = defaultdict(set)
    if rows:
        leases = Lease.objects.using(database_alias()).filter(
            task_id__in=[row.id for row in rows], is_shared=True, status__in=TAKEN
        )
        for task_id, worker in leases.values_list("task_id", "worker_id"):
            taken[task_id].add(str(worker))
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for row in rows:
        if len(_able(row, takers) - taken[row.id]) < row.open_slots:
            found[row.queue_name].append(row)
    return found


MOST_NAMES = 20

# No index has what is parked: it stands among what is due soon while it rests, and each time that
# it is tried in vain, an attempt of its is among those that went wrong. The latest of both are
# read. PostgreSQL would rather read the primary key than the index of what went wrong: a range and
# an order that begins with the status leave it no other. SQLite wants the conditions of the indexes
# word by word.
PARKED = Statement.of("""
SELECT id, name, CAST({since parked_at} AS double precision) AS seconds
FROM (
    SELECT id, name, parked_at
    FROM (
        SELECT id, name, parked_at
        FROM taskqueue_task
        WHERE status IN ('retrying', 'scheduled')
        ORDER BY run_after
        LIMIT %(limit)s
    ) AS soon
    WHERE parked_at IS NOT NULL
    UNION
    SELECT task.id, task.name, task.parked_at
    FROM (
        SELECT task_id, error_class
        FROM taskqueue_lease
        WHERE status >= 'returned' AND status <= 'returned'
            AND status IN ('failed', 'lost', 'returned', 'stopped')
        ORDER BY status DESC, id DESC
        LIMIT %(limit)s
    ) AS attempt
    JOIN taskqueue_task AS task ON task.id = attempt.task_id
    WHERE attempt.error_class = %(unknown)s
        AND task.parked_at IS NOT NULL AND task.status IN ('ready', 'scheduled')
) AS parked
ORDER BY seconds DESC
""")


def parked(*, most: int) -> Iterator[Notice]:
    """Yield notices by task name, the one that fails first at first."""
    by_name: defaultdict[str, list[Any]] = defaultdict(list)
    for row in read(PARKED, limit=most, unknown=class_path(UnknownTask)):
        by_name[row[1]].append(row)
    for name, rows in list(by_name.items())[:MOST_NAMES]:
        task_id, _, seconds = rows[0]
        yield Notice(
            "parked",
            ERROR if seconds > get_settings().PARK_LIMIT.total_seconds() / 2 else WARNING,
            name,
            count=len(rows),
            is_capped=len(rows) >= most,
            example=str(as_uuid(task_id)),
            seconds=seconds,
        )
