"""The reasons why many tasks wait, as far as a few statements for all of them can tell."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from taskqueue.core.states import TaskStatus
from taskqueue.engine.connections import database_alias
from taskqueue.models import Pause, Queue, Task
from taskqueue.models.pause import EVERYTHING
from taskqueue.monitoring.read_models.worker import ShownWorker, read_workers
from taskqueue.monitoring.why.pending import paused, unknown, without_workers
from taskqueue.monitoring.why.reasons import Reason, because
from taskqueue.monitoring.why.surroundings import MOST_WORKERS, Surroundings

# The columns that are read of the tasks.
COLUMNS = ("name", "queue_name", "status", "worker_names", "parked_at")


class _Shared(Surroundings):
    """The surroundings of one of many tasks, read once for all of them."""

    def __init__(
        self,
        task: Task,
        at: datetime,
        workers: list[ShownWorker],
        queues: dict[str, Queue],
        pauses: dict[str, Pause],
    ) -> None:
        super().__init__(task)
        self.now, self.workers = at, workers
        self.queue = queues.get(task.queue_name)
        self._pauses = [pauses[name] for name in (EVERYTHING, task.name) if name in pauses]

    @property
    def pauses(self) -> list[Pause]:
        return [row for row in self._pauses if row.is_paused_at(self.now)]


def why_they_wait(tasks: Iterable[Task], at: datetime) -> dict[UUID, Reason]:
    """Return the main reason for each blocked task, and for ready tasks if something is wrong.

    Three kinds of rows are read, and none if no task is ready. The page of a task shows the rest:
    its place in the queue, and what holds its limits.
    """
    waiting = list(tasks)
    found = {task.pk: because("blocked") for task in waiting if task.status == TaskStatus.BLOCKED}
    ready = [task for task in waiting if task.status == TaskStatus.READY]
    if not ready:
        return found
    alias = database_alias()
    queues = Queue.objects.using(alias).in_bulk(
        {task.queue_name for task in ready}, field_name="name"
    )
    names = {EVERYTHING, *(task.name for task in ready)}
    pauses = Pause.objects.using(alias).in_bulk(names, field_name="name")
    workers = read_workers(limit=MOST_WORKERS)
    for task in ready:
        around = _Shared(task, at, workers, queues, pauses)
        reasons = [*unknown(around), *paused(around), *without_workers(around)]
        if reasons:
            found[task.pk] = reasons[0]
    return found
