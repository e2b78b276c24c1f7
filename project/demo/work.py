"""The work of the demo: what is enqueued, and waiting until all of it has ended."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db.models import Count, Q

import taskqueue
from project import tasks
from project.demo.errors import DemoError
from project.demo.progress import ProgressBar
from project.demo.services import Services
from taskqueue.core.states import FINISHED
from taskqueue.models import Schedule, Task
from taskqueue.results import TaskResult
from taskqueue.results.workflows import WorkflowRun

OWN = Path(os.environ.get("TASKQUEUE_DEMO_SOURCES", Path(taskqueue.__file__).parent))
"""The source files of taskqueue itself, or of another folder, which the workflow reads."""
DELAY = timedelta(seconds=2)
LOOK_SECONDS = 0.1
OURS = Q(name__startswith="project.", schedule=None)
"""The tasks that the demo enqueues; those of its schedule go on as long as the demo."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """The calls that the demo itself enqueues; `walk` enqueues further tasks, one a file."""

    walk: TaskResult[int]
    retried: TaskResult[str]
    delayed: TaskResult[str]
    doomed: TaskResult[None]
    reduced: WorkflowRun

    def __len__(self) -> int:
        """Return how many tasks that are: the workflow has one a file, and two more."""
        return len(fields(self)) + 1 + len(tasks.find_modules.call(str(OWN)))

    def refresh(self) -> None:
        """Read them all again."""
        for result in (self.walk, self.retried, self.delayed, self.doomed, self.reduced):
            result.refresh()


def enqueue_work(root: Path) -> Work:
    """Enqueue everything but the summary, which has to wait for the rest."""
    return Work(
        walk=tasks.walk.enqueue(str(root)),
        retried=tasks.stumble.enqueue(),
        delayed=tasks.remind.using(run_after=DELAY, priority=tasks.SOON).enqueue(
            "Two seconds are over."
        ),
        doomed=tasks.fail_for_good.enqueue(),
        reduced=tasks.most_imported.enqueue(str(OWN)),
    )


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Waits for tasks while it looks after the processes that should run them."""

    services: Services
    deadline: float
    """When to give up, by `time.monotonic()`."""

    def wait_for_all(self, bar: ProgressBar, *, expected: int) -> None:
        """Return once every task has ended. Raises `DemoError` when none will."""
        while True:
            total, finished = _progress()
            bar.show(finished, max(total, expected))
            if finished == total:
                return
            self._ensure_hope(f"{total - finished:,} tasks of {total:,} have not ended")

    def wait_for_schedule(self, name: str) -> Schedule:
        """Return the schedule once a run of it has ended. Raises `DemoError` when none will."""
        while True:
            schedule = Schedule.objects.filter(name=name).first()
            if schedule is not None and schedule.last_finished_at is not None:
                return schedule
            self._ensure_hope(f"No run of the schedule {name} has ended")

    def wait_for(self, result: TaskResult[Any] | WorkflowRun) -> None:
        """Return once this task or workflow has ended. Raises `DemoError` when it will not."""
        while not result.is_finished:
            self._ensure_hope(f"{result.name} is {result.status}")
            result.refresh()

    def _ensure_hope(self, trouble: str) -> None:
        self.services.ensure_alive()
        if time.monotonic() > self.deadline:
            raise DemoError(f"{trouble}, and the time is over (--timeout).\n{self.services.tail()}")
        time.sleep(LOOK_SECONDS)


def _progress() -> tuple[int, int]:
    """How many tasks there are, and how many of them have ended, at one moment."""
    counts = Task.objects.filter(OURS).aggregate(
        total=Count("id"), finished=Count("id", filter=Q(status__in=FINISHED))
    )
    return counts["total"], counts["finished"]
