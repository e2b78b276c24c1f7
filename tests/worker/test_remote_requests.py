"""Workers that are asked from afar to be quiet, to stop, to stop at once: they see it, and obey."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from taskqueue.control import kill_worker, quiet_worker, resume_worker, stop_worker
from taskqueue.models import Lease, Task, Worker
from taskqueue.results import TaskResult
from tests.conftest import StartWorker
from tests.sample import tasks
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow

SHORT = {"PING_INTERVAL": 0.3}
SOON = timedelta(seconds=60)
"""Far below what it would wait for otherwise; above what a busy machine adds."""


def row(name: str = "w1") -> Worker:
    return Worker.objects.get(name=name)


def wait_until_seen(name: str = "w1") -> Worker:
    wait_until(lambda: row(name).request_seen_at, what="an acknowledgement")
    return row(name)


def wait_until_it_says(status: str, name: str = "w1") -> None:
    wait_until(lambda: row(name).status == status, what=f"a worker that is {status}")


def start_body(tmp_path: Path) -> tuple[TaskResult[Any], Path]:
    """A task that runs until the file appears."""
    go = tmp_path / "go"
    result = tasks.append_and_wait.enqueue(str(tmp_path / "effects"), str(go))
    wait_until((tmp_path / "effects").exists, what="a running body")
    return result, go


def test_a_quiet_worker_finishes_what_runs_claims_nothing_more_and_stays(
    start_worker: StartWorker, tmp_path: Path, pool: str
) -> None:
    worker = start_worker(
        "--name", "w1", "--concurrency", "1", "--pool", pool,
        settings={**SHORT, "CLAIM_AHEAD": 5},
    )  # fmt: skip
    running, go = start_body(tmp_path)
    tasks.noop.enqueue_many([((), {})] * 3)

    quiet_worker("w1", by="anna", reason="a new release")

    wait_until_it_says("quiet")
    assert row().requested_by == "anna"
    # What had been claimed ahead is handed back; it left no trace.
    wait_until(lambda: Lease.objects.count() == 1, what="one lease, of what runs")
    go.touch()
    assert running.wait(60).status == "succeeded"
    later = tasks.noop.enqueue()
    seen_at = row().seen_at
    wait_until(lambda: row().seen_at > seen_at + timedelta(seconds=1), what="its pings")
    assert (worker.returncode, row().status, row().is_idle) == (None, "quiet", False)
    assert Task.objects.filter(status="ready", attempt=0).count() == 4
    start_worker("--name", "w2", "--concurrency", "1", settings=SHORT)
    assert later.wait(60).worker_names == ["w2"]

    stop_worker("w1", by="ben")
    assert worker.wait(60) == 0
    assert row().request_seen_at <= row().stopped_at


def test_a_resumed_worker_claims_again_at_once(start_worker: StartWorker) -> None:
    worker = start_worker(
        "--name", "w1", "--concurrency", "1", "--poll-interval", "600", settings=SHORT
    )
    wait_until_it_says("running")
    quiet_worker("w1")
    wait_until_it_says("quiet")
    waiting = tasks.noop.enqueue()

    resume_worker("w1", by="anna", reason="the deploy is over")

    assert waiting.wait(SOON).worker_names == ["w1"]
    wait_until_it_says("running")
    assert "Resumed" in worker.log()
    # As before it was quiet, also for what follows.
    assert tasks.noop.enqueue_many([((), {})] * 3)[-1].wait(90).status == "succeeded"
    quiet_worker("w1")
    wait_until_it_says("quiet")
    stop_worker("w1")
    assert worker.wait(60) == 0


def test_a_worker_that_is_asked_to_stop_finishes_what_runs_and_ends(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker("--name", "w1", "--concurrency", "1", settings=SHORT)
    running, go = start_body(tmp_path)
    waiting = tasks.noop.enqueue()

    stop_worker("w1", by="anna", reason="a new release")

    wait_until_seen()
    wait_until_it_says("stopping")
    go.touch()
    assert worker.wait(60) == 0
    assert running.wait(1).status == "succeeded"
    assert Task.objects.get(id=waiting.id).status == "ready"
    stopped = row()
    assert (stopped.status, stopped.request, stopped.requested_by) == ("stopped", "stop", "anna")
    assert stopped.requested_at <= stopped.request_seen_at <= stopped.stopped_at


def test_a_task_that_outlasts_the_shutdown_is_returned_uncounted(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker(
        "--name", "w1", "--concurrency", "1", "--shutdown-timeout", "0.5", settings=SHORT
    )
    running, _ = start_body(tmp_path)

    stop_worker("w1")

    assert worker.wait(60) == 0
    assert_returned(running)


def assert_returned(result: TaskResult[Any]) -> None:
    task = Task.objects.get(id=result.id)
    assert (task.status, task.failures, task.crashes) == ("ready", 0, 0)
    assert Lease.objects.get(task_id=task.id).status == "returned"


@pytest.mark.parametrize("before", ["running", "quiet", "stopping"])
def test_a_worker_that_is_killed_returns_what_runs_and_ends_at_once(
    start_worker: StartWorker, tmp_path: Path, pool: str, before: str
) -> None:
    worker = start_worker(
        "--name", "w1", "--concurrency", "1", "--pool", pool, "--shutdown-timeout", "600",
        settings={**SHORT, "KILL_GRACE": 600},
    )  # fmt: skip
    running, _ = start_body(tmp_path)
    if before != "running":
        {"quiet": quiet_worker, "stopping": stop_worker}[before]("w1")
        wait_until_it_says(before)
    family = psutil.Process(worker.pid).children(recursive=True)

    kill_worker("w1", by="anna", reason="it eats the memory")

    assert worker.wait(60) == 0
    assert_returned(running)
    killed = row()
    assert (killed.status, killed.request, killed.requested_by) == ("stopped", "kill", "anna")
    assert killed.stopped_at - killed.request_seen_at < SOON
    wait_until(lambda: not any(each.is_running() for each in family), what="no process left")


@pytest.mark.direct_only
@pytest.mark.postgresql_only
def test_a_notification_brings_it_long_before_the_next_ping(start_worker: StartWorker) -> None:
    far = {"LEASE_DURATION": 3600, "PING_INTERVAL": 600}
    worker = start_worker("--name", "w1", settings=far)
    tasks.noop.enqueue().wait(60)
    stop_worker("w1")
    assert worker.wait(60) == 0
    assert row().request_seen_at - row().requested_at < SOON


def test_a_worker_that_starts_anew_under_the_name_works(start_worker: StartWorker) -> None:
    worker = start_worker("--name", "w1", settings=SHORT)
    stop_worker("w1")
    assert worker.wait(60) == 0
    start_worker("--name", "w1", settings=SHORT)
    assert tasks.noop.enqueue().wait(60).status == "succeeded"
    assert (row().request, row().status) == ("", "running")


def test_a_signal_after_a_request_to_stop_is_the_second_one(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker("--name", "w1", "--concurrency", "1", settings=SHORT)
    running, _ = start_body(tmp_path)
    stop_worker("w1")
    wait_until_it_says("stopping")

    worker.terminate()

    assert worker.wait(60) == 0
    assert_returned(running)


def test_a_quiet_worker_that_was_to_drain_leaves_the_rest(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    running = tasks.append_and_wait.enqueue(str(tmp_path / "effects"), str(go))
    worker = start_worker("--name", "w1", "--concurrency", "1", "--drain", settings=SHORT)
    wait_until((tmp_path / "effects").exists, 60, what="a running body")
    quiet_worker("w1")
    wait_until_it_says("quiet")
    left = tasks.noop.enqueue()
    go.touch()
    assert running.wait(60).status == "succeeded"
    assert Task.objects.get(id=left.id).status == "ready"
    stop_worker("w1")
    assert worker.wait(60) == 0
