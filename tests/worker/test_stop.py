"""A running task that is cancelled: asked, interrupted, killed; it ends as cancelled."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from taskqueue.models import Lease, Task
from taskqueue.results import TaskResult
from tests.conftest import StartWorker
from tests.sample import tasks, worker_tasks
from tests.sample.models import Effect
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow

SHORT = {"PING_INTERVAL": 0.2, "STOP_GRACE": 0.4, "KILL_GRACE": 0.5}


def start(result: TaskResult[Any]) -> TaskResult[Any]:
    """Wait until its body runs."""
    running = Lease.objects.filter(task_id=result.id, started_at__isnull=False)
    wait_until(running.exists, what="a running body")
    return result


def assert_cancelled(result: TaskResult[Any]) -> None:
    result.wait(60)
    lease = Lease.objects.get(task_id=result.id)
    task = Task.objects.get(id=result.id)
    assert (result.status, lease.status) == ("cancelled", "stopped")
    assert (task.failures, task.crashes) == (0, 0)
    assert lease.stop_requested_by == "ada"
    assert lease.stop_requested_at <= lease.stop_seen_at <= lease.finished_at
    assert "enough" in task.error_message


@pytest.mark.parametrize(
    ("definition", "arguments"),
    [
        (tasks.wait_for_stop, ()),
        (tasks.sleep_async, (60,)),
        (tasks.loop_for_ever.using(timeout=600), ()),
        (tasks.hold_on, ()),
        (worker_tasks.finish_when_asked, ()),
    ],
    ids=["cooperative", "async", "loop", "stubborn", "returns all the same"],
)
def test_a_stopped_task_ends_as_cancelled(
    start_worker: StartWorker, pool: str, definition: Any, arguments: tuple[Any, ...]
) -> None:
    start_worker("--pool", pool, "--concurrency", "2", settings=SHORT)
    result = start(definition.enqueue(*arguments))

    result.cancel("enough", by="ada")

    assert_cancelled(result)
    assert tasks.noop.enqueue().wait(60).status == "succeeded"
    result.refresh()
    assert result.status == "cancelled"


def test_a_body_is_stopped_with_the_graces_of_its_own_task(start_worker: StartWorker) -> None:
    settings = SHORT | {"STOP_GRACE": 3600, "KILL_GRACE": 3600}
    start_worker("--concurrency", "2", settings=settings)
    hasty = tasks.hold_on.using(stop_grace=0.1, kill_grace=0.1)
    result = start(hasty.enqueue())

    result.cancel("enough", by="ada")

    assert_cancelled(result)


@pytest.mark.postgresql_only  # On SQLite nobody could ask: such a body holds the write lock.
def test_an_atomic_body_that_was_stopped_commits_nothing(
    start_worker: StartWorker, pool: str
) -> None:
    start_worker("--pool", pool, "--concurrency", "1", settings=SHORT)
    result = start(worker_tasks.finish_atomically_when_asked.enqueue())

    result.cancel("enough", by="ada")

    assert_cancelled(result)
    assert not Effect.objects.exists()


def test_a_sleep_in_one_call_is_interrupted_and_may_clean_up(start_worker: StartWorker) -> None:
    start_worker("--concurrency", "1", settings={**SHORT, "KILL_GRACE": 20})
    result = start(worker_tasks.sleep_unless_stopped.enqueue(300))

    result.cancel("enough", by="ada")

    assert_cancelled(result)
    assert Effect.objects.get(task_id=result.id).note == "cleaned up"


def test_a_sleep_in_one_call_loses_its_lease_in_the_thread_pool(start_worker: StartWorker) -> None:
    """It cannot be interrupted there: its slot stays busy, the others go on."""
    start_worker("--pool", "thread", "--concurrency", "2", settings=SHORT)
    result = start(tasks.sleep.enqueue(300))

    result.cancel("enough", by="ada")

    assert_cancelled(result)
    assert tasks.noop.enqueue().wait(60).status == "succeeded"


def test_stopping_a_task_leaves_its_siblings_alone(start_worker: StartWorker, pool: str) -> None:
    start_worker("--pool", pool, "--concurrency", "3", settings=SHORT)
    sibling = tasks.sleep.enqueue(4)
    stopped = start(tasks.hold_on.enqueue())

    stopped.cancel("enough", by="ada")

    assert_cancelled(stopped)
    assert sibling.wait(60).status == "succeeded"
    assert sibling.attempts == 1


def test_a_task_claimed_ahead_can_be_cancelled_before_it_starts(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker("--concurrency", "1", settings={**SHORT, "CLAIM_AHEAD": 10})
    go = tmp_path / "go"
    blocking = start(tasks.append_and_wait.enqueue(str(tmp_path / "effects"), str(go)))
    waiting = tasks.mark.enqueue("must not run")
    wait_until(Lease.objects.filter(task_id=waiting.id).exists, what="a claim ahead")

    waiting.cancel("enough", by="ada")

    assert waiting.wait(60).status == "cancelled"
    go.touch()
    assert blocking.wait(60).status == "succeeded"
    assert not Effect.objects.exists()


def test_a_cancelled_task_that_crashes_is_not_run_again(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker("--concurrency", "1", settings={**SHORT, "STOP_GRACE": 60})
    path = tmp_path / "effects"
    result = worker_tasks.work.using(crash_delay=0).enqueue(str(path), 300)
    wait_until(lambda: path.exists() and path.read_text(), what="a running body")

    result.cancel("enough", by="ada")
    os.kill(int(path.read_text().split()[2]), signal.SIGKILL)

    assert result.wait(60).status == "cancelled"
    assert result.attempts == 1
