"""One queue in detail: its tasks by status, its throughput and failure rate."""

from __future__ import annotations

from dataclasses import dataclass, fields

from taskqueue.core.states import TaskStatus
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.unknown_names import unknown_queue
from taskqueue.engine.queue_tasks import counts_of
from taskqueue.monitoring.counts import CAP, Count
from taskqueue.monitoring.read_models.base import about
from taskqueue.monitoring.read_models.queue import ShownQueue
from taskqueue.monitoring.read_models.worker import read_workers
from taskqueue.monitoring.series import series

SECONDS_AN_HOUR, MOST_WORKERS = 3600, 1_000


@dataclass(frozen=True, kw_only=True)
class QueueTasks:
    """The tasks of a queue that are kept, by status."""

    status: str = about(choices=[status.value for status in TaskStatus])
    count: int = about("Tasks of the queue that were found.")
    is_capped: bool = about(
        f"Whether there may be more: of each status the newest {CAP:,} tasks of all queues are"
        " looked at, of ready ones those of the queue itself."
    )

    def __str__(self) -> str:
        return str(Count(self.count, self.is_capped))


@dataclass(frozen=True, kw_only=True)
class QueueDetails(ShownQueue):
    """A queue with the counts of its tasks, and its throughput."""

    tasks: list[QueueTasks]
    per_second: float = about("Attempts of all outcomes that ended within the last hour.")
    failure_rate: float | None = about("Of those, from 0 to 1; null: no attempt ended.")
    workers: list[str] = about("The workers that take from it, by name.")
    hint: str = about(
        "Says that no definition, worker or task has had the queue, and which may be meant; empty:"
        " one has."
    )


def queue_tasks(name: str) -> list[QueueTasks]:
    """Return the counts of a queue's tasks by status, in the order of their life."""
    found = counts_of(project_connection(), name, most=CAP)
    return [
        QueueTasks(
            status=status.value,
            count=found[status].number,
            is_capped=not found[status].is_whole,
        )
        for status in TaskStatus
    ]


def details_of(queue: ShownQueue) -> QueueDetails:
    """Return the queue with its details, by a few statements."""
    workers = read_workers(limit=MOST_WORKERS)
    hour = series("hour", queue_name=queue.name).whole
    failed = hour.failed + hour.lost
    return QueueDetails(
        **{each.name: getattr(queue, each.name) for each in fields(ShownQueue)},
        tasks=queue_tasks(queue.name),
        per_second=hour.ended / SECONDS_AN_HOUR,
        failure_rate=failed / hour.ended if hour.ended else None,
        workers=[
            worker.name for worker in workers if worker.takes_tasks and worker.serves(queue.name)
        ],
        hint=unknown_queue(project_connection(), queue.name),
    )
