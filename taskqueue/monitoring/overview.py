"""An overview: counts, queues, workers, running attempts, throughput and notices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from taskqueue.monitoring.counts import Count, status_counts
from taskqueue.monitoring.notices import Notice, notices
from taskqueue.monitoring.read_models.attempt import RunningTask, running_now
from taskqueue.monitoring.read_models.queue import ShownQueue, read_queues
from taskqueue.monitoring.read_models.worker import ShownWorker, read_workers
from taskqueue.monitoring.reading import now
from taskqueue.monitoring.series import Attempts, Series, series

MOST = 1_000


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The state of everything at one moment."""

    # By the database's clock.
    at: datetime
    counts: dict[str, Count]
    queues: list[ShownQueue]
    # The running workers, then lost and stopped ones.
    workers: list[ShownWorker]
    running: list[RunningTask]
    # Attempts by minute.
    hour: Series
    notices: list[Notice]

    @property
    def last_minute(self) -> Attempts:
        """Attempts that ended in the last full minute."""
        return self.hour.steps[-2]

    @property
    def this_minute(self) -> Attempts:
        """Attempts that ended in the current minute."""
        return self.hour.steps[-1]


def overview() -> Overview:
    """Read the overview in a few statements by indexes."""
    workers = read_workers(limit=MOST)
    queues = read_queues(limit=MOST, workers=workers)
    running = running_now(limit=MOST)
    return Overview(
        at=now(),
        counts=status_counts(),
        queues=queues,
        workers=workers,
        running=running,
        hour=series("hour"),
        notices=notices(queues=queues, workers=workers, running=running),
    )
