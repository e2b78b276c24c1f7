"""What somebody ought to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from taskqueue.monitoring.fleet import LOST, WorkerFigures, living, worker_figures
from taskqueue.monitoring.lanes import QueueFigures, queue_figures
from taskqueue.monitoring.running import RunningTask, running_now

WARNING, ERROR = "warning", "error"
STALLED_SECONDS = 60.0
"""For so long no task is ready while a worker has a free slot for it."""
LATELY_SECONDS = 3600.0
"""For so long a lost worker is news."""


@dataclass(frozen=True, kw_only=True)
class Notice:
    """One thing to look at; a page makes a sentence of the code."""

    code: str
    """`no_worker`, `unserved_queue`, `paused_with_waiting`, `stalled`, `lost_worker`,
    `worker_trouble`, `wedged`."""
    level: str
    """`warning` or `error`."""
    subject: str = ""
    """The queue, worker or task."""
    count: int | None = None
    """How many tasks are concerned."""
    is_capped: bool = False
    """Whether there are more than `count`."""
    detail: str = ""
    """What a worker said of its trouble."""


def notices(
    *,
    queues: Sequence[QueueFigures] | None = None,
    workers: Sequence[WorkerFigures] | None = None,
    running: Sequence[RunningTask] | None = None,
) -> list[Notice]:
    """Errors first; none where all is well. What has been read already spares its queries."""
    workers = worker_figures() if workers is None else workers
    queues = queue_figures(workers=workers) if queues is None else queues
    running = running_now() if running is None else running
    found = [*_of_queues(queues, workers), *_of_workers(workers), *_of_tasks(running)]
    return sorted(found, key=lambda notice: notice.level != ERROR)


def _of_queues(
    queues: Sequence[QueueFigures], workers: Sequence[WorkerFigures]
) -> Iterator[Notice]:
    waiting = [queue for queue in queues if queue.waiting.value]
    if not living(workers):
        yield Notice(
            code="no_worker",
            level=ERROR if waiting else WARNING,
            count=sum(queue.waiting.value for queue in waiting),
            is_capped=any(queue.waiting.is_capped for queue in waiting),
        )
    for queue in waiting:
        if queue.is_paused:
            yield _of_queue("paused_with_waiting", WARNING, queue)
        elif not queue.is_served:
            if living(workers):
                yield _of_queue("unserved_queue", ERROR, queue)
        elif (queue.oldest_seconds or 0.0) > STALLED_SECONDS and _has_free_slot(queue, workers):
            yield _of_queue("stalled", ERROR, queue)


def _has_free_slot(queue: QueueFigures, workers: Sequence[WorkerFigures]) -> bool:
    """Whether a worker that takes from the queue has one; others may be at work elsewhere."""
    return any(
        worker.takes_tasks and worker.serves(queue.name) and worker.busy < worker.slots
        for worker in workers
    )


def _of_queue(code: str, level: str, queue: QueueFigures) -> Notice:
    count = queue.waiting
    return Notice(
        code=code, level=level, subject=queue.name, count=count.value, is_capped=count.is_capped
    )


def _of_workers(workers: Sequence[WorkerFigures]) -> Iterator[Notice]:
    for worker in workers:
        if worker.is_alive and worker.trouble:
            yield Notice(
                code="worker_trouble", level=ERROR, subject=worker.name, detail=worker.trouble
            )
        elif worker.state == LOST and worker.seen_seconds < LATELY_SECONDS:
            yield Notice(code="lost_worker", level=WARNING, subject=worker.name)


def _of_tasks(running: Sequence[RunningTask]) -> Iterator[Notice]:
    for each in running:
        if each.is_wedged:
            yield Notice(code="wedged", level=WARNING, subject=str(each.task_id))
