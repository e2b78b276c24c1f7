"""Workers whose slots and queues are changed while they run: they take it up, and tell so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

from taskqueue.control import change_worker, quiet_worker, resume_worker
from taskqueue.models import Lease, Task, Worker
from taskqueue.results import TaskResult
from tests.conftest import StartWorker
from tests.sample import tasks
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow

SHORT = {"PING_INTERVAL": 0.3, "CLAIM_AHEAD": 0}


def row() -> Worker:
    return Worker.objects.get(name="w1")


def change(**changes: Any) -> Worker:
    """Change the worker; it as it has taken the change up."""
    change_worker("w1", **changes)
    wait_until(lambda: row().wanted_seen_at, what="an acknowledged change")
    return row()


def bodies(folder: Path, number: int, *, queue: str = "default") -> list[TaskResult[Any]]:
    """Tasks that run until their file `go` appears, in folders of their own."""
    results = []
    for place in range(number):
        own = folder / f"{queue}-{place}"
        own.mkdir(parents=True)
        task = tasks.append_and_wait.using(queue_name=queue)
        results.append(task.enqueue(str(own / "effects"), str(own / "go")))
    return results


def started(folder: Path, queue: str = "default") -> int:
    return len(list(folder.glob(f"{queue}-*/effects")))


def let_go(folder: Path) -> None:
    for own in folder.glob("*-*/"):
        if own.is_dir():
            (own / "go").touch()


def test_more_slots_start_more_bodies(start_worker: StartWorker, tmp_path: Path, pool: str) -> None:
    worker = start_worker("--name", "w1", "--concurrency", "1", "--pool", pool, settings=SHORT)
    waiting = bodies(tmp_path, 3)
    wait_until(lambda: started(tmp_path) == 1, what="a first body")
    assert change(concurrency=3, by="anna").concurrency == 3
    wait_until(lambda: started(tmp_path) == 3, what="bodies in the new slots")
    let_go(tmp_path)
    for result in waiting:
        assert result.wait(timeout=60).status == "succeeded"
    worker.terminate()
    assert worker.wait(60) == 0


def test_with_fewer_slots_bodies_finish_and_their_children_go(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker("--name", "w1", "--concurrency", "3", settings=SHORT)
    first = bodies(tmp_path / "first", 3)
    wait_until(lambda: started(tmp_path / "first") == 3, what="three bodies")
    assert change(concurrency=1).concurrency == 1
    later = bodies(tmp_path / "later", 2)
    (tmp_path / "first" / "default-0" / "go").touch()
    assert first[0].wait(timeout=60).status == "succeeded"
    # Two bodies of the three are left: none may start beside them.
    assert started(tmp_path / "later") == 0
    let_go(tmp_path / "first")
    for result in first:
        assert result.wait(timeout=60).status == "succeeded"
    wait_until(lambda: started(tmp_path / "later") == 1, what="a body in the slot that is left")
    assert Lease.objects.filter(status="running").count() == 1
    names = [each.name() for each in psutil.Process(worker.pid).children(recursive=True)]
    wait_until(
        lambda: [
            each.name() for each in psutil.Process(worker.pid).children(recursive=True)
        ].count("taskqueue-child") <= 1,
        30,
        what=f"the end of the children that are too many, of {names}",
    )  # fmt: skip
    let_go(tmp_path / "later")
    for result in later:
        assert result.wait(timeout=60).status == "succeeded"


def test_slots_that_are_given_back_are_used_by_the_children_that_are_there(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker("--name", "w1", "--concurrency", "2", settings=SHORT)
    running = bodies(tmp_path, 2)
    wait_until(lambda: started(tmp_path) == 2, what="two bodies")
    change(concurrency=1)
    change(concurrency=2)
    assert Lease.objects.filter(status="running").count() == 2
    let_go(tmp_path)
    for result in running:
        assert result.wait(timeout=60).status == "succeeded"


def test_queues_and_their_slots_are_changed(start_worker: StartWorker, tmp_path: Path) -> None:
    start_worker("--name", "w1", "--concurrency", "3", "--queues", "default", settings=SHORT)
    mail = bodies(tmp_path, 3, queue="mail")
    assert started(tmp_path, "mail") == 0
    worker = change(queues="mail=2@2,default")
    assert (worker.queues, worker.queue_slots) == ({"mail": 2, "default": 1}, {"mail": 2})
    wait_until(lambda: started(tmp_path, "mail") == 2, what="two bodies of the new queue")
    other = bodies(tmp_path, 1)
    wait_until(lambda: started(tmp_path) == 1, what="a body in the slot that is left")
    assert started(tmp_path, "mail") == 2
    let_go(tmp_path)
    for result in [*mail, *other]:
        assert result.wait(timeout=60).status == "succeeded"


def test_a_quiet_worker_can_be_changed_and_resumed(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker("--name", "w1", "--concurrency", "1", settings=SHORT)
    quiet_worker("w1")
    wait_until(lambda: row().status == "quiet", what="a quiet worker")
    waiting = bodies(tmp_path, 2)
    change(concurrency=2)
    assert Task.objects.filter(status="ready").count() == 2
    resume_worker("w1")
    wait_until(lambda: started(tmp_path) == 2, what="bodies in both slots")
    let_go(tmp_path)
    for result in waiting:
        assert result.wait(timeout=60).status == "succeeded"
