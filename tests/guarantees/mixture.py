"""A mixture of tasks that end in every way, and workers that are shaken meanwhile."""

from __future__ import annotations

from typing import Any

from taskqueue import Fixed
from taskqueue.results import TaskResult
from tests.guarantees.history import Journal
from tests.sample import tasks, worker_tasks


class Mixture:
    """Tasks of many kinds; `atomic` are those whose effect commits with their success."""

    def __init__(self, journal: Journal, *, rounds: int) -> None:
        path = str(journal.path)
        self.atomic: list[TaskResult[Any]] = []
        self.others: list[TaskResult[Any]] = []
        for number in range(rounds):
            self.atomic += [
                worker_tasks.work_atomically.enqueue(path, 0.05),
                tasks.mark_atomically.enqueue(fail_times=number % 4),
            ]
            self.others += [
                worker_tasks.work_hard.enqueue(path, 0.05),
                worker_tasks.work.using(crash_delay=0.5, max_crashes=50).enqueue(path, 0.02),
                tasks.add.using(crash_delay=0.5, max_crashes=50).enqueue(number),
                tasks.fail.using(max_attempts=2, backoff=Fixed(0.1), max_crashes=50).enqueue(),
                tasks.retry_later.using(crash_delay=0.5, max_crashes=50).enqueue(1),
                tasks.snooze.using(crash_delay=0.5, max_crashes=50).enqueue(1),
                tasks.cancel_itself.using(crash_delay=0.5, max_crashes=50).enqueue(),
                worker_tasks.crash_until.using(crash_delay=0.5).enqueue(1 + number % 2),
            ]

    @property
    def all(self) -> list[TaskResult[Any]]:
        """Every one."""
        return self.atomic + self.others
