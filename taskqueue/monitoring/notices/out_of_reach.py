"""Tasks that no running worker takes: those for absent or more workers, or unknown ones."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.engine.connections import database_alias
from taskqueue.models import Lease
from taskqueue.monitoring.notice import ERROR, WARNING, Notice
from taskqueue.monitoring.notice_texts import Code
from taskqueue.monitoring.notices.situation import Situation
from taskqueue.monitoring.notices.waiting import Parked, WaitingTask
from taskqueue.monitoring.read_models.queue import Absence
from taskqueue.monitoring.read_models.worker import ShownWorker, living

# How long a worker may be gone, as in a restart.
LATE = timedelta(minutes=1)
# Tasks with too few workers whose attempts are read, oldest first.
MOST_CHECKED = 100
MOST_NAMED = 5
TAKEN = (LeaseStatus.RUNNING, LeaseStatus.SUCCEEDED)


def out_of_reach(situation: Situation) -> Iterator[Notice]:
    """Yield notices by queue, except for paused and unserved queues, which have other notices."""
    passing = {queue.name for queue in situation.queues if queue.is_paused or not queue.is_served}
    takers = [worker for worker in situation.workers if worker.takes_tasks]
    absence, now = Absence(takers), situation.now
    absent: defaultdict[str, list[WaitingTask]] = defaultdict(list)
    short: list[WaitingTask] = []
    rows, is_capped = situation.waiting
    for row in sorted(rows, key=lambda row: row.run_after):
        if row.run_after > now - LATE or row.queue_name in passing or not _is_open(row):
            continue
        names = row.worker_names
        if names is not None and absence.keeps(row.queue_name, json.dumps(names)):
            absent[row.queue_name].append(row)
        elif row.workers > 1 and not row.broadcast and len(_able(row, takers)) < row.workers:
            short.append(row)
    for tasks in absent.values():
        named = _listed(tasks[0].worker_names or ())
        yield _notice("absent_workers", tasks, now, is_capped=is_capped, detail=named)
    for tasks in _really_short(short[:MOST_CHECKED], takers).values():
        yield _notice(
            "too_few_workers",
            tasks,
            now,
            is_capped=is_capped or len(short) > MOST_CHECKED,
            total=tasks[0].workers,
            detail=str(tasks[0].open_slots),
        )


def _notice(code: Code, rows: Sequence[WaitingTask], now: datetime, **more: Any) -> Notice:
    oldest = rows[0]
    return Notice(
        code,
        ERROR,
        oldest.queue_name,
        count=len(rows),
        example=str(oldest.id),
        seconds=(now - oldest.run_after).total_seconds(),
        since=oldest.run_after,
        **more,
    )


def _listed(names: Sequence[object]) -> str:
    """Return names such as `a, b, …`."""
    shown = [str(name) for name in names[:MOST_NAMED]]
    return ", ".join([*shown, "…"] if len(names) > MOST_NAMED else shown)


def _is_open(row: WaitingTask) -> bool:
    """Return whether it still needs a worker; a new broadcast takes all that are running."""
    if row.workers > 1:
        return bool(row.open_slots)
    return bool(row.status == TaskStatus.READY and row.workers)


def _able(row: WaitingTask, takers: Sequence[ShownWorker]) -> set[str]:
    """Return the workers that may run it, or have run it."""
    serving = {worker.name for worker in takers if worker.serves(row.queue_name)}
    return serving if row.worker_names is None else serving & set(row.worker_names)


def _really_short(
    rows: Sequence[WaitingTask], takers: Sequence[ShownWorker]
) -> dict[str, list[WaitingTask]]:
    """Return the tasks with too few workers, by queue, not counting workers that have run them."""
    taken: defaultdict[Any, set[str]] = defaultdict(set)
    if rows:
        leases = Lease.objects.using(database_alias()).filter(
            task_id__in=[row.id for row in rows], is_shared=True, status__in=TAKEN
        )
        for task_id, worker in leases.values_list("task_id", "worker_id"):
            taken[task_id].add(str(worker))
    found: defaultdict[str, list[WaitingTask]] = defaultdict(list)
    for row in rows:
        if len(_able(row, takers) - taken[row.id]) < row.open_slots:
            found[row.queue_name].append(row)
    return found


MOST_NAMES = 20


def parked(situation: Situation) -> Iterator[Notice]:
    """Yield notices by task name, the task that fails first at the top."""
    by_name: defaultdict[str, list[Parked]] = defaultdict(list)
    for task in situation.parked:
        by_name[task.name].append(task)
    for name, tasks in list(by_name.items())[:MOST_NAMES]:
        seconds = tasks[0].seconds
        yield Notice(
            "parked",
            ERROR if seconds > get_settings().PARK_LIMIT.total_seconds() / 2 else WARNING,
            name,
            count=len(tasks),
            is_capped=len(tasks) >= situation.looked_at,
            example=str(tasks[0].id),
            seconds=seconds,
            since=situation.ago(seconds),
        )


def absent_tags(situation: Situation) -> Iterator[Notice]:
    """Yield the tags that waiting tasks require and no running worker of their queue has."""
    alive = living(situation.workers)
    for queue_name, tags in situation.standing.lanes:
        serving = [worker for worker in alive if worker.serves(queue_name)]
        if not any(tags <= set(worker.tags) for worker in serving):
            named = ",".join(sorted(tags))
            yield Notice("absent_tags", ERROR if serving else WARNING, queue_name, detail=named)
