"""`manage.py taskqueue stop ID`, from another process: the task ends, whatever its body does."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from taskqueue.models import Audit, Lease, Task
from tests.conftest import StartWorker
from tests.sample import tasks, worker_tasks
from tests.worker_process import ROOT, children_of, wait_until, worker_environment

pytestmark = pytest.mark.slow

STOP_GRACE, KILL_GRACE = 0.5, 0.5
SHORT = {"PING_INTERVAL": 0.3, "STOP_GRACE": STOP_GRACE, "KILL_GRACE": KILL_GRACE}
GRACE = timedelta(seconds=STOP_GRACE + KILL_GRACE)
SLACK = timedelta(seconds=20)
"""Seconds that a busy machine may add; a lease is longer."""
FAR_PING = {"LEASE_DURATION": 600, "PING_INTERVAL": 120}


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `manage.py taskqueue`, in a process group of its own."""
    return subprocess.run(
        [sys.executable, "-m", "django", "taskqueue", *map(str, arguments)],
        cwd=ROOT,
        env=worker_environment({}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        start_new_session=True,
    )


def stop(task_id: object) -> None:
    """Ask it to stop, as an operator would."""
    done = command("stop", task_id, "--reason", "it is stuck", "--by", "anna")
    assert (done.returncode, done.stderr) == (0, "")


def assert_stopped(task_id: object) -> Lease:
    """It ended as cancelled, and who, why and when can be read."""
    lease = Lease.objects.get(task_id=task_id)
    task = Task.objects.get(id=task_id)
    assert (task.status, lease.status) == ("cancelled", "stopped")
    assert (lease.stop_requested_by, lease.stop_reason) == ("anna", "it is stuck")
    assert lease.stop_requested_at <= lease.stop_seen_at <= lease.finished_at
    assert lease.finished_at - lease.stop_seen_at < GRACE + SLACK
    line = Audit.objects.get(subject=str(task_id))
    assert (line.verb, line.actor, line.reason) == ("stop", "anna", "it is stuck")
    return lease


def test_a_busy_loop_that_swallows_everything_is_killed_and_the_next_task_runs_at_once(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    # Time for the child to swallow what is raised before it is killed.
    patient = {**SHORT, "KILL_GRACE": 6}
    worker = start_worker("--concurrency", "1", settings=patient)
    path = tmp_path / "effects"
    result = worker_tasks.spin_stubbornly.enqueue(str(path))
    wait_until(path.exists, what="a running body")
    [child] = children_of(worker.pid)
    following = tasks.noop.enqueue()

    stop(result.id)
    result.wait(60)

    lease = assert_stopped(result.id)
    assert "swallowed" in path.read_text()
    wait_until(lambda: not child.is_running(), what="the end of the child")
    assert following.wait(60).status == "succeeded"
    after = Lease.objects.get(task_id=following.id).started_at - lease.finished_at
    assert after < SLACK
    result.refresh()
    assert result.status == "cancelled"

    shown = json.loads(command("show", result.id, "--format", "json").stdout)
    [attempt] = shown["latest_attempts"]
    assert (attempt["status"], attempt["stop_requested_by"]) == ("stopped", "anna")
    assert attempt["stop_requested_at"] <= attempt["stop_seen_at"] <= attempt["finished_at"]


@pytest.mark.parametrize(
    "definition", [worker_tasks.spin_stubbornly, worker_tasks.swallow_async], ids=["def", "async"]
)
def test_a_thread_that_ignores_the_stop_loses_its_lease_and_records_nothing_late(
    start_worker: StartWorker, tmp_path: Path, definition: Any
) -> None:
    start_worker("--pool", "thread", "--concurrency", "2", settings=SHORT)
    path = tmp_path / "effects"
    result = definition.enqueue(str(path))
    wait_until(path.exists, what="a running body")

    stop(result.id)
    result.wait(60)

    assert_stopped(result.id)
    assert tasks.noop.enqueue().wait(60).status == "succeeded"
    result.refresh()
    assert result.status == "cancelled"
    with pytest.raises(ValueError, match="has no return value"):
        result.return_value  # noqa: B018


def test_an_async_body_that_looks_away_is_stopped(start_worker: StartWorker, pool: str) -> None:
    start_worker("--pool", pool, "--concurrency", "2", settings=SHORT)
    result = tasks.sleep_async.enqueue(300)
    running = Lease.objects.filter(task_id=result.id, started_at__isnull=False)
    wait_until(running.exists, what="a running body")

    stop(result.id)
    result.wait(60)

    assert_stopped(result.id)


@pytest.mark.direct_only
@pytest.mark.postgresql_only
def test_a_notification_brings_the_stop_long_before_the_next_ping(
    start_worker: StartWorker,
) -> None:
    start_worker("--concurrency", "1", settings={**SHORT, **FAR_PING})
    result = tasks.wait_for_stop.enqueue()
    running = Lease.objects.filter(task_id=result.id, started_at__isnull=False)
    wait_until(running.exists, what="a running body")

    stop(result.id)
    result.wait(60)

    lease = assert_stopped(result.id)
    assert lease.stop_seen_at - lease.stop_requested_at < SLACK


def test_stopping_an_ended_task_exits_with_1(transactional_db: None) -> None:
    result = tasks.noop.enqueue()
    assert command("stop", result.id).returncode == 0
    done = command("stop", result.id)
    assert done.returncode == 1
    assert "Only tasks that have not finished can be cancelled." in done.stderr
    assert done.stdout == ""
    assert command("stop").returncode == 2
    assert command("stop", "--all-workers").returncode == 1
