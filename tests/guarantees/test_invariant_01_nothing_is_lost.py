"""Invariant 1: a task whose enqueue committed exists, and ends. Lost: none, ever."""

from __future__ import annotations

import pytest

from taskqueue.models import Lease, Task
from tests.conftest import StartWorker
from tests.guarantees.history import (
    Journal,
    all_ended,
    assert_none_lost,
    assert_ownership_does_not_overlap,
)
from tests.sample import worker_tasks
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow

TASKS = 10_000
WORKERS = 4


def test_ten_thousand_tasks_run_once_each_with_four_workers(
    start_worker: StartWorker, journal: Journal
) -> None:
    workers = [start_worker("--concurrency", "1", wait_ready=False) for _ in range(WORKERS)]
    for worker in workers:
        worker.wait_until_ready()

    results = worker_tasks.work.enqueue_many([((str(journal.path), 0), {})] * TASKS)
    wait_until(lambda: all_ended(results), 300, what="the end of all tasks")

    assert_none_lost(results)
    assert Task.objects.filter(status="succeeded", attempt=1).count() == TASKS
    starts = journal.starts()
    assert len(starts) == TASKS
    assert set(starts.values()) == {1}
    assert Lease.objects.filter(status="succeeded").count() == Lease.objects.count() == TASKS
    assert_ownership_does_not_overlap(journal)
    for worker in workers:
        worker.terminate()
    assert [worker.wait() for worker in workers] == [0] * WORKERS
