"""The data for judging alert rules, in addition to that of the notices."""

from __future__ import annotations

from datetime import timedelta
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
from taskqueue.monitoring.notices.situation import Situation
from taskqueue.monitoring.read_models.queue import ShownQueue


class AlertSituation(Situation):
    """The state at one moment, with figures that rules count over their own time windows."""

    def __init__(self) -> None:
        super().__init__()
        self._failures: dict[int, list[Failures]] = {}
        self._rates: dict[tuple[str, int], list[Rate]] = {}
        self._backlogs: dict[tuple[str, int], int] = {}

    @cached_property
    def failed_workflows(self) -> list[FailedWorkflow]:
        """The newest workflows that failed."""
        return failed_workflows()

    @cached_property
    def slow_workflows(self) -> list[SlowWorkflow]:
        """The running workflows whose usual time is known."""
        return slow_workflows()

    def failures(self, seconds: int) -> list[Failures]:
        """Return the tasks that failed within the last `seconds`."""
        if seconds not in self._failures:
            self._failures[seconds] = failures_since(self.now - timedelta(seconds=seconds))
        return self._failures[seconds]

    def rates(self, by: str, seconds: int) -> list[Rate]:
        """Return the attempts within the last `seconds`, if there are enough for a rate."""
        if (by, seconds) not in self._rates:
            found = rates_since(by, self.now - timedelta(seconds=seconds))
            self._rates[by, seconds] = [rate for rate in found if rate.total >= LEAST_ATTEMPTS]
        return self._rates[by, seconds]

    def backlog(self, queue: ShownQueue, most: int) -> int:
        """Return how many tasks wait in a queue; if there may be more, counted up to `most`."""
        if not queue.is_waiting_capped or queue.waiting >= most:
            return queue.waiting
        key = queue.name, most
        if key not in self._backlogs:
            self._backlogs[key] = max(queue.waiting, backlog_of(queue.name, most=most))
        return self._backlogs[key]
