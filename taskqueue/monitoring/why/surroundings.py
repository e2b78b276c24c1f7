"""The surroundings of a task: the rows that explain its status."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Any

from taskqueue.core.states import LeaseStatus
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.lost import lost_attempts
from taskqueue.models import Lease, Pause, Queue, Task
from taskqueue.models.pause import EVERYTHING
from taskqueue.monitoring.read_models.worker import ShownWorker, living, read_workers
from taskqueue.monitoring.reading import now

MOST_WORKERS = 1_000
# The most attempts, the latest; a broadcast may have more.
MOST_LEASES = 1_000


class Surroundings:
    """The surroundings of a task; each part is read by an index when it is first needed."""

    def __init__(self, task: Task) -> None:
        self.task = task

    @cached_property
    def now(self) -> datetime:
        """The current time by the database's clock."""
        return now()

    @cached_property
    def workers(self) -> list[ShownWorker]:
        """The running workers, and others that have ended."""
        return read_workers(limit=MOST_WORKERS)

    @property
    def serving(self) -> list[ShownWorker]:
        """The running workers that serve the task's queue, whether or not they claim tasks."""
        return [each for each in living(self.workers) if each.serves(self.task.queue_name)]

    @property
    def takers(self) -> list[ShownWorker]:
        """The workers among `serving` that claim tasks, and that the task allows."""
        names, tags = self.task.worker_names, set((self.task.limits or {}).get("tags", ()))
        if self.stays_on:
            names = [self.stays_on]
        return [
            each
            for each in self.serving
            if each.takes_tasks and (names is None or each.name in names) and tags <= set(each.tags)
        ]

    @property
    def is_shared(self) -> bool:
        """Whether several workers must run the task."""
        return self.task.workers > 1 or self.task.broadcast

    @property
    def stays_on(self) -> str:
        """The worker of its last attempt, if the next one must be there too."""
        return self.task.pinned_to if self.task.worker_names is None else ""

    @cached_property
    def queue(self) -> Queue | None:
        """The row of its queue, if there is one."""
        return Queue.objects.using(database_alias()).filter(name=self.task.queue_name).first()

    @property
    def pauses(self) -> list[Pause]:
        """The current pauses of everything and of its definition."""
        rows = Pause.objects.using(database_alias()).filter(name__in=[EVERYTHING, self.task.name])
        return [row for row in rows.order_by("name") if row.is_paused_at(self.now)]

    @cached_property
    def leases(self) -> list[Any]:
        """Its attempts, the latest first."""
        leases = Lease.objects.using(database_alias()).filter(task_id=self.task.id)
        return list(leases.defer("traceback", "return_value").order_by("-attempt")[:MOST_LEASES])

    @cached_property
    def lost(self) -> set[int]:
        """Its running attempts whose worker is lost."""
        return {each.lease_id for each in lost_attempts(project_connection(), [self.task.id])}

    @property
    def held(self) -> list[Any]:
        """Its running attempts, in order."""
        return [each for each in self.leases if each.status == LeaseStatus.RUNNING][::-1]
