"""Tasks of several workers, of named ones, of all: with real workers."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from taskqueue.models import Lease, Task, Worker
from taskqueue.results import TaskResult
from tests.conftest import Drain, StartWorker
from tests.sample import shared_tasks
from tests.worker_process import WorkerProcess, wait_until

pytestmark = pytest.mark.slow

SHORT = {"LEASE_DURATION": 12, "PING_INTERVAL": 0.5, "TAKEOVER_INTERVAL": 0.5}
"""A worker that is delayed by a busy machine is alive all the same: its lease is longer."""


def start_several(start_worker: StartWorker, *names: str) -> dict[str, WorkerProcess]:
    workers = {
        name: start_worker("--name", name, "--concurrency", "1", settings=SHORT, wait_ready=False)
        for name in names
    }
    for worker in workers.values():
        worker.wait_until_ready()
    return workers


def running(result: TaskResult[Any]) -> set[str]:
    leases = Lease.objects.filter(task_id=result.id, status="running", started_at__isnull=False)
    return set(leases.values_list("worker_id", flat=True))


def ended(result: TaskResult[Any]) -> list[tuple[str, str]]:
    leases = Lease.objects.filter(task_id=result.id).order_by("attempt")
    return [(lease.worker_id, lease.status) for lease in leases]


def test_three_of_five_workers_succeed_though_two_are_killed_in_the_middle(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    workers = start_several(start_worker, "a", "b", "c", "d", "e")
    until = tmp_path / "until"
    result = shared_tasks.stay.using(workers=3).enqueue(str(tmp_path / "journal"), str(until))
    first = wait_until(lambda: len(running(result)) == 3 and running(result))
    killed = sorted(first)[:2]
    for name in killed:
        workers[name].kill()
    wait_until(lambda: len(running(result) - set(killed)) == 3, 90, what="two others")
    until.touch()

    result.wait(60)

    assert result.status == "succeeded"
    ends = ended(result)
    succeeded = [name for name, status in ends if status == "succeeded"]
    assert len(succeeded) == len(set(succeeded)) == 3
    assert set(succeeded).isdisjoint(killed)
    assert Counter(ends)[(killed[0], "lost")] == Counter(ends)[(killed[1], "lost")] == 1
    assert sorted(result.return_value) == sorted(succeeded)
    task = Task.objects.get(id=result.id)
    assert (task.crashes, task.successes, task.running_leases, task.open_slots) == (2, 3, 0, 0)


def test_every_worker_alive_runs_a_broadcast_once(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    names = ["a", "b", "c", "d"]
    start_several(start_worker, *names)
    result = shared_tasks.name_worker.using(broadcast=True).enqueue()

    result.wait(60)

    assert result.status == "succeeded"
    assert sorted(result.return_value) == names
    assert sorted(ended(result)) == [(name, "succeeded") for name in names]


def test_a_worker_that_dies_before_its_part_is_recorded_and_not_replaced(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    workers = start_several(start_worker, "a", "b")
    until = tmp_path / "until"
    # The only slot of b is taken, so that it dies before its part of the broadcast.
    busy = shared_tasks.stay.using(worker_names=["b"]).enqueue(
        str(tmp_path / "journal"), str(until)
    )
    wait_until(lambda: running(busy) == {"b"})
    result = shared_tasks.name_worker.using(broadcast=True).enqueue()
    wait_until(lambda: ("a", "succeeded") in ended(result))
    workers["b"].kill()

    result.wait(60)

    assert result.status == "succeeded"
    assert result.return_value == ["a"]
    assert sorted(ended(result)) == [("a", "succeeded"), ("b", "lost")]
    [error] = result.errors
    assert (error.worker_name, error.message) == (
        "b",
        "The worker ended before it ran its part.",
    )


def test_a_restart_under_the_same_name_is_not_a_second_worker(
    start_worker: StartWorker, drain: Drain
) -> None:
    result = shared_tasks.name_worker.using(workers=2).enqueue()
    drain("--concurrency", "2", "--name", "a")
    drain("--concurrency", "2", "--name", "a")
    result.refresh()
    assert (result.status, ended(result)) == ("running", [("a", "succeeded")])
    drain("--concurrency", "2", "--name", "b")
    result.refresh()
    assert (result.status, result.return_value) == ("succeeded", ["a", "b"])


@pytest.mark.parametrize("pool", ["process", "thread"])
def test_one_worker_with_many_slots_takes_one_place_only(drain: Drain, pool: str) -> None:
    atomic = shared_tasks.name_worker_atomically.using(workers=2).enqueue()
    result = shared_tasks.name_worker.using(workers=3).enqueue()
    drain("--name", "a", "--concurrency", "4", "--pool", pool)
    assert ended(result) == ended(atomic) == [("a", "succeeded")]
    drain("--name", "b", "--concurrency", "4", "--pool", pool)
    atomic.refresh()
    assert (atomic.status, atomic.return_value) == ("succeeded", ["a", "b"])


def test_a_failure_leaves_its_place_to_another_worker(start_worker: StartWorker) -> None:
    start_several(start_worker, "a", "b", "c")
    result = shared_tasks.fail_on.using(workers=2).enqueue("a")

    result.wait(60)

    assert result.status == "succeeded"
    assert sorted(result.return_value) == ["b", "c"]
    assert all(error.worker_name == "a" for error in result.errors)


def test_a_named_task_of_one_worker_returns_a_plain_value(drain: Drain) -> None:
    result = shared_tasks.fail_on.using(worker_names=["a"], max_attempts=1).enqueue("b")
    drain("--concurrency", "2", "--name", "a")
    result.refresh()
    assert result.return_value == "a"


def test_pinned_tasks_stay_when_another_worker_drains(drain: Drain) -> None:
    pinned = shared_tasks.name_worker.using(worker_names=["b"]).enqueue()
    anyone = shared_tasks.name_worker.enqueue()
    drain("--concurrency", "2", "--name", "a")
    pinned.refresh()
    anyone.refresh()
    assert (pinned.status, anyone.return_value) == ("ready", "a")
    drain("--concurrency", "2", "--name", "b")
    pinned.refresh()
    assert pinned.return_value == "b"


def test_a_worker_that_is_excluded_loses_its_lease_at_its_next_ping(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    start_several(start_worker, "a")
    until, journal = tmp_path / "until", tmp_path / "journal"
    result = shared_tasks.stay.using(worker_names=["a", "b"]).enqueue(str(journal), str(until))
    wait_until(lambda: running(result) == {"a"})
    wait_until(lambda: journal.exists() and journal.read_text(), what="a running body")

    Task.objects.filter(id=result.id).update(worker_names=["b"], pinned_to="b")
    wait_until(lambda: ended(result) == [("a", "returned")], what="the end of its lease")
    result.refresh()
    assert result.status == "ready"
    body = int(journal.read_text().split()[2])
    wait_until(lambda: not psutil.pid_exists(body), what="the end of its body")

    until.touch()
    start_several(start_worker, "b")
    result.wait(60)
    assert result.return_value == "b"
    assert "end" not in [
        line.split()[-1] for line in journal.read_text().splitlines() if line.split()[1] == "1"
    ]


def test_a_broadcast_waits_for_a_first_worker(drain: Drain) -> None:
    result = shared_tasks.name_worker.using(broadcast=True, run_after=timedelta(0)).enqueue()
    assert result.status == "ready"
    assert not Worker.objects.exists()
    drain("--concurrency", "2", "--name", "late")
    result.refresh()
    assert (result.status, result.return_value) == ("succeeded", ["late"])
