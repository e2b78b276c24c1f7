"""The data that alert rules are judged by: each part is read once, where a rule needs it."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cached_property

from taskqueue.core.alerts import LEAST_ATTEMPTS
from taskqueue.monitoring.alerts.figures import (
    FailedWorkflow,
    Failures,
    Rate,
    SlowWorkflow,
    backlog_of,
    failed_workflows,
    failures_since,
    rates_since,
    slow_workflows,
)
from taskqueue.monitoring.notice import Notice
from taskqueue.monitoring.notices import (
    Overdue,
    of_queues,
    of_workers,
    overdue_schedules,
    resting_schedules,
)
from taskqueue.monitoring.read_models.attempt import RunningTask, running_now
from taskqueue.monitoring.read_models.limit import ShownLimit, read_limits
from taskqueue.monitoring.read_models.pause import read_pauses
from taskqueue.monitoring.read_models.queue import ShownQueue, read_queues
from taskqueue.monitoring.read_models.worker import ShownWorker, read_workers
from taskqueue.monitoring.reading import now

MOST = 1_000


class Situation:
    """The state of everything at one moment."""

    def __init__(self) -> None:
        self._failures: dict[int, list[Failures]] = {}
        self._rates: dict[tuple[str, int], list[Rate]] = {}
        self._backlogs: dict[tuple[str, int], int] = {}

    @cached_property
    def now(self) -> datetime:
        """The moment by the database's clock."""
        return now()

    @cached_property
    def workers(self) -> list[ShownWorker]:
        """The workers."""
        return read_workers(limit=MOST)

    @cached_property
    def queues(self) -> list[ShownQueue]:
        """The queues."""
        return read_queues(limit=MOST, workers=self.workers)

    @cached_property
    def running(self) -> list[RunningTask]:
        """The running attempts, wedged ones first."""
        return running_now(limit=MOST)

    @cached_property
    def limits(self) -> list[ShownLimit]:
        """The limits."""
        return read_limits(limit=MOST)

    @cached_property
    def of_queues(self) -> list[Notice]:
        """The dashboard's notices of queues, and that no worker is running."""
        everything = any(pause.definition is None for pause in read_pauses(limit=1))
        return list(of_queues(self.queues, self.workers, are_paused=everything))

    @cached_property
    def of_workers(self) -> list[Notice]:
        """The dashboard's notices of workers."""
        return list(of_workers(self.workers))

    @cached_property
    def of_schedules(self) -> list[Notice]:
        """The dashboard's notices of schedules that rest."""
        return list(resting_schedules())

    @cached_property
    def overdue(self) -> list[Overdue]:
        """The schedules that are overdue."""
        return overdue_schedules(most=MOST)

    @cached_property
    def failed_workflows(self) -> list[FailedWorkflow]:
        """The newest workflows that failed."""
        return failed_workflows()

    @cached_property
    def slow_workflows(self) -> list[SlowWorkflow]:
        """The running workflows whose usual time is known."""
        return slow_workflows()

    def failures(self, seconds: int) -> list[Failures]:
        """Return the tasks that failed within so many seconds."""
        if seconds not in self._failures:
            self._failures[seconds] = failures_since(self.now - timedelta(seconds=seconds))
        return self._failures[seconds]

    def rates(self, by: str, seconds: int) -> list[Rate]:
        """Return the attempts within so many seconds, where there are enough for a rate."""
        if (by, seconds) not in self._rates:
            found = rates_since(by, self.now - timedelta(seconds=seconds))
            self._rates[by, seconds] = [rate for rate in found if rate.total >= LEAST_ATTEMPTS]
        return self._rates[by, seconds]

    def backlog(self, queue: ShownQueue, most: int) -> int:
        """Return how many tasks wait in a queue, counted up to so many where there may be more."""
        if not queue.is_waiting_capped or queue.waiting >= most:
            return queue.waiting
        key = queue.name, most
        if key not in self._backlogs:
            self._backlogs[key] = max(queue.waiting, backlog_of(queue.name, most=most))
        return self._backlogs[key]
