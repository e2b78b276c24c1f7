"""An overview: counts, queues, workers, running attempts, throughput and notices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from taskqueue.monitoring.counts import Count, status_counts
from taskqueue.monitoring.notices import Notice, Situation, notices
from taskqueue.monitoring.read_models.attempt import RunningTask
from taskqueue.monitoring.read_models.queue import ShownQueue
from taskqueue.monitoring.read_models.worker import ShownWorker
from taskqueue.monitoring.series import Attempts, Series, series


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The state of everything at one moment."""

    # The time by the database's clock.
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
    situation = Situation()
    return Overview(
        at=situation.now,
        counts=status_counts(),
        queues=situation.queues,
        workers=situation.workers,
        running=situation.running,
        hour=series("hour"),
        notices=notices(situation),
    )
