"""The situation at one moment: each part is read once, when it is first needed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cached_property

from taskqueue.engine.connections import project_connection
from taskqueue.engine.lost import LostAttempt, lost_attempts
from taskqueue.monitoring.notices.failing import Failing, read_failing
from taskqueue.monitoring.notices.figures import Came, tasks_that_came, usual_times
from taskqueue.monitoring.notices.standing import Standing, read_standing
from taskqueue.monitoring.notices.waiting import Parked, Waiting, read_parked, read_waiting
from taskqueue.monitoring.read_models.attempt import RunningTask, running_now
from taskqueue.monitoring.read_models.limit import ShownLimit, read_limits
from taskqueue.monitoring.read_models.queue import (
    QueueRows,
    ShownQueue,
    read_queue_rows,
    read_queues,
)
from taskqueue.monitoring.read_models.worker import ShownWorker, read_workers

# The most workers, queues, running attempts and limits that are read.
MOST = 1_000


class Situation:
    """The state by which the notices, the doctor and the alert rules judge."""

    def __init__(self, *, looked_at: int = 1_000) -> None:
        """`looked_at`: how many tasks are read for each condition without an index."""
        self.looked_at = looked_at
        self._usual: dict[str, float | None] = {}

    @property
    def now(self) -> datetime:
        """The current time by the database's clock."""
        return self.standing.at

    def ago(self, seconds: float) -> datetime:
        """Return the moment that many seconds before, limited to the earliest possible."""
        try:
            return self.now - timedelta(seconds=seconds)
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)

    @cached_property
    def standing(self) -> Standing:
        """The pauses, inactive and late schedules, and tags that tasks require."""
        return read_standing()

    @cached_property
    def workers(self) -> list[ShownWorker]:
        """The workers."""
        return read_workers(limit=MOST)

    @cached_property
    def queue_rows(self) -> QueueRows:
        """The rows from which the queues and their metrics are made."""
        return read_queue_rows(limit=MOST)

    @cached_property
    def queues(self) -> list[ShownQueue]:
        """The queues."""
        return read_queues(limit=MOST, workers=self.workers, known=self.queue_rows)

    @cached_property
    def running(self) -> list[RunningTask]:
        """The running attempts: wedged ones first, then the longest."""
        return running_now(limit=MOST)

    @cached_property
    def limits(self) -> list[ShownLimit]:
        """The limits."""
        return read_limits(limit=MOST)

    @cached_property
    def waiting(self) -> Waiting:
        """The first tasks that not every worker may take."""
        return read_waiting(most=self.looked_at)

    @cached_property
    def parked(self) -> list[Parked]:
        """The tasks of names that no worker knows."""
        return read_parked(most=self.looked_at)

    @cached_property
    def lost(self) -> list[LostAttempt]:
        """The attempts that lost workers hold."""
        return lost_attempts(project_connection(), limit=self.looked_at)

    @cached_property
    def failing(self) -> Failing:
        """Changes in failures: failure rates that jumped, and new kinds of error."""
        return read_failing()

    def came(self, queues: list[str]) -> dict[str, Came]:
        """Return how many of the tasks waiting in these queues came recently."""
        return tasks_that_came(queues, self.now)

    def usual(self, names: set[str]) -> dict[str, float]:
        """Return the run time p95 of these names, where enough runs are known."""
        if missing := names - self._usual.keys():
            found = usual_times(missing)
            self._usual |= {name: found.get(name) for name in missing}
        return {name: time for name in names if (time := self._usual[name]) is not None}
