"""Why a task that waits does not run yet, as far as two small queries tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from taskqueue.engine.connections import database_alias
from taskqueue.models import Queue, Task, Worker
from taskqueue.models.clock import DatabaseClock
from taskqueue.models.worker import WorkerStatus
from taskqueue.states import PENDING, WAITING, TaskStatus

BLOCKED, NOT_DUE, RETRY_DUE = "blocked", "not_due", "retry_due"
QUEUE_PAUSED, UNSERVED, NOT_TAKING = "queue_paused", "unserved", "not_taking"
WORKERS_ABSENT, UNKNOWN, IN_LINE = "workers_absent", "unknown", "in_line"
MOST_WORKERS = 1000


@dataclass(frozen=True, kw_only=True)
class Reason:
    """One thing that keeps a task from running."""

    code: str
    """`blocked`: by other tasks. `not_due`, `retry_due`: until `moment`. `queue_paused`: the queue
    `subject`, until `moment` or for good. `unserved`: no worker lives that serves the queue
    `subject`. `not_taking`: those that do are quiet or end. `workers_absent`: none of the workers
    `subject` lives, and no other may run it. `unknown`: since `moment` it has met only workers that
    do not know `subject`. `in_line`: nothing but others before it.
    """
    subject: str = ""
    moment: datetime | None = None


def why_waiting(task: Task) -> list[Reason]:
    """All that keeps the task from running; empty for one that runs or has ended."""
    if task.status not in PENDING:
        return []
    if task.status == TaskStatus.BLOCKED:
        return [Reason(code=BLOCKED)]
    workers = list(_living())
    queue = (
        Queue.objects.using(database_alias())
        .annotate(now=DatabaseClock())
        .filter(name=task.queue_name)
        .first()
    )
    reasons = []
    if task.status in WAITING:
        is_retry = task.status == TaskStatus.RETRYING
        code = RETRY_DUE if is_retry else NOT_DUE
        reasons.append(Reason(code=code, moment=task.run_after))
    if task.parked_at is not None:
        reasons.append(Reason(code=UNKNOWN, subject=task.name, moment=task.parked_at))
    if queue is not None and queue.is_paused_at(queue.now):
        reasons.append(
            Reason(code=QUEUE_PAUSED, subject=task.queue_name, moment=queue.paused_until)
        )
    reasons.extend(_without_workers(task, workers))
    return reasons or [Reason(code=IN_LINE)]


def _without_workers(task: Task, workers: list[Any]) -> Iterable[Reason]:
    """What keeps the workers from it."""
    serving = [each for each in workers if not each.queues or task.queue_name in each.queues]
    if task.worker_names is not None:
        named = [each for each in serving if each.name in task.worker_names]
        if not named:
            names = ", ".join(map(str, task.worker_names))
            yield Reason(code=WORKERS_ABSENT, subject=names)
            return
        serving = named
    if not serving:
        yield Reason(code=UNSERVED, subject=task.queue_name)
    elif all(each.status != WorkerStatus.RUNNING for each in serving):
        yield Reason(code=NOT_TAKING, subject=task.queue_name)


def _living() -> Iterable[Any]:
    """The workers that were seen within their lease, and have not ended."""
    ended = [WorkerStatus.STOPPED.value, WorkerStatus.LOST.value]
    rows = Worker.objects.using(database_alias()).exclude(status__in=ended)
    lean = rows.only("name", "queues", "status", "seen_at", "lease_seconds")
    for worker in lean.annotate(now=DatabaseClock()).order_by("-seen_at")[:MOST_WORKERS]:
        if (worker.now - worker.seen_at).total_seconds() <= worker.lease_seconds:
            yield worker
