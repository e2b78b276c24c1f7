"""Where bodies run: many at once, apart from each other, on clean connections."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from taskqueue.models import Lease, Task
from taskqueue.results import TaskResult
from tests.conftest import Drain, StartWorker
from tests.sample import tasks, worker_tasks
from tests.sample.models import Effect
from tests.worker_process import children_of, wait_until

pytestmark = pytest.mark.slow


def values(results: Iterable[TaskResult[Any]]) -> list[Any]:
    found = []
    for result in results:
        result.wait(60)
        found.append(result.return_value)
    return found


def wait_together(directory: Path, count: int, definition: Any) -> list[TaskResult[Any]]:
    """Bodies that all end only once all of them have started."""
    paths = [directory / f"body-{number}" for number in range(count)]
    return [definition.enqueue(str(path), [str(each) for each in paths]) for path in paths]


def test_the_thread_pool_runs_many_bodies_at_once_in_one_child(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    results = wait_together(tmp_path, 20, worker_tasks.meet)

    start_worker("--pool", "thread", "--concurrency", "20")

    assert len(set(values(results))) == 1


def test_async_bodies_run_many_at_once_on_one_loop(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    results = wait_together(tmp_path, 50, worker_tasks.meet_async)

    start_worker("--pool", "thread", "--concurrency", "50")

    assert len(set(values(results))) == 1


def test_the_process_pool_runs_each_slot_in_a_process_of_its_own(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    results = wait_together(tmp_path, 3, worker_tasks.meet)

    start_worker("--pool", "process", "--concurrency", "3")

    assert len(set(values(results))) == 3


def test_the_parent_runs_no_body(start_worker: StartWorker, pool: str) -> None:
    worker = start_worker("--pool", pool)

    (process,) = values([tasks.process_of.enqueue()])

    assert process in {child.pid for child in children_of(worker.pid)}


def test_a_crash_costs_its_own_child_only(start_worker: StartWorker, tmp_path: Path) -> None:
    start_worker("--concurrency", "2")
    path = tmp_path / "sibling"
    sibling = worker_tasks.work.enqueue(str(path), 5)
    wait_until(path.exists)

    crashed = tasks.segfault.using(max_crashes=1).enqueue()

    assert crashed.wait(60).status == "failed"
    assert sibling.wait(60).status == "succeeded"
    assert sibling.attempts == 1


def test_tasks_behind_a_crash_are_run_without_counting_it(start_worker: StartWorker) -> None:
    crashed = tasks.exit_hard.using(max_crashes=1, priority=1).enqueue()
    behind = tasks.noop.enqueue_many([((), {})] * 30)

    start_worker("--concurrency", "1", settings={"CLAIM_AHEAD": 31})

    assert crashed.wait(60).status == "failed"
    values(behind)
    tasks_behind = Task.objects.exclude(id=crashed.id)
    assert set(tasks_behind.values_list("attempt", "crashes", "failures")) == {(1, 0, 0)}


def test_a_child_killed_from_outside_loses_its_attempt_at_once(
    start_worker: StartWorker, tmp_path: Path, pool: str
) -> None:
    start_worker("--pool", pool, "--concurrency", "1")
    path = tmp_path / "effects"
    result = worker_tasks.sleep_once.using(crash_delay=1).enqueue(str(path), 600)
    wait_until(lambda: path.exists() and path.read_text(), what="a running body")

    os.kill(int(path.read_text().split()[2]), signal.SIGKILL)

    assert result.wait(60).return_value == 2
    first, second = Lease.objects.filter(task_id=result.id).order_by("attempt")
    # The lease had nearly 30 seconds to go: nobody waited for its end.
    assert first.status == "lost"
    assert first.finished_at < first.expires_at
    assert "SIGKILL" in first.error_message
    assert second.claimed_at - first.finished_at >= timedelta(seconds=0.9)
    task = Task.objects.get(id=result.id)
    assert (task.crashes, task.failures) == (1, 0)


def test_a_connection_is_kept_from_task_to_task(start_worker: StartWorker) -> None:
    start_worker("--concurrency", "1")

    sessions = values(tasks.session_of.enqueue() for _ in range(5))

    assert len({tuple(session) for session in sessions}) == 1


@pytest.mark.parametrize("leave", [tasks.leave_transaction_open, tasks.leave_atomic_open])
def test_a_transaction_that_a_body_left_open_is_rolled_back(
    start_worker: StartWorker, pool: str, leave: Any
) -> None:
    start_worker("--pool", pool, "--concurrency", "1")

    left = leave.enqueue()
    assert left.wait(60).status == "succeeded"
    after = tasks.mark.enqueue("after")
    assert after.wait(60).status == "succeeded"

    notes = list(Effect.objects.values_list("note", flat=True))
    assert notes == ["after"]
    # What was left open would stay so; a worker's own transactions are short.
    wait_until(nobody_is_in_a_transaction, what="the end of all transactions")


def nobody_is_in_a_transaction() -> bool:
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
        )
        return bool(cursor.fetchone()[0] == 0)


def test_a_body_that_broke_its_connection_breaks_no_other(
    start_worker: StartWorker, pool: str
) -> None:
    start_worker("--pool", pool, "--concurrency", "1")

    assert worker_tasks.break_connection.enqueue().wait(60).status == "failed"

    assert tasks.mark.enqueue("after").wait(60).status == "succeeded"


def test_threads_that_a_body_left_behind_do_not_keep_a_worker_from_ending(drain: Drain) -> None:
    result = worker_tasks.leave_thread.enqueue()

    drain("--concurrency", "1", "--max-tasks", "1")

    result.refresh()
    assert result.status == "succeeded"
