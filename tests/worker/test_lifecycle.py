"""How a worker begins, is told to stop, and ends."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from django.db import connection

from taskqueue.declarations.limits import Concurrency, Sequence
from taskqueue.models import Lease, Task, Worker
from tests.conftest import Drain, StartWorker
from tests.sample import tasks, worker_tasks
from tests.worker_process import ROOT, WorkerProcess, wait_until, worker_environment

pytestmark = pytest.mark.slow

Stop = Callable[[WorkerProcess], None]
SIGNALS = [WorkerProcess.terminate, WorkerProcess.interrupt]


def wait_for_line(path: Path, text: str = "start") -> None:
    wait_until(lambda: path.exists() and text in path.read_text(), what=f"{text} in {path}")


def wait_until_stopping() -> None:
    wait_until(Worker.objects.filter(status="stopping").exists, what="a worker that stops")


@pytest.mark.parametrize("stop", SIGNALS)
def test_a_signal_drains_what_runs_and_claims_nothing_more(
    start_worker: StartWorker, tmp_path: Path, pool: str, stop: Stop
) -> None:
    worker = start_worker("--pool", pool, "--concurrency", "1")
    go, path = tmp_path / "go", tmp_path / "effects"
    running = tasks.append_and_wait.enqueue(str(path), str(go))
    wait_for_line(path)
    waiting = tasks.noop.enqueue_many([((), {})] * 20)

    stop(worker)
    wait_until_stopping()
    go.touch()

    assert worker.wait() == 0
    running.refresh()
    assert running.status == "succeeded"
    for result in waiting:
        result.refresh()
        assert (result.status, result.attempts) == ("ready", 0)


@pytest.mark.parametrize("stop", SIGNALS)
def test_a_second_signal_returns_the_rest_uncounted(
    start_worker: StartWorker, tmp_path: Path, pool: str, stop: Stop
) -> None:
    worker = start_worker("--pool", pool, "--concurrency", "2")
    paths = [tmp_path / "one", tmp_path / "two"]
    results = [tasks.append_and_wait.enqueue(str(path), str(tmp_path / "never")) for path in paths]
    for path in paths:
        wait_for_line(path)

    stop(worker)
    wait_until_stopping()
    stop(worker)

    assert worker.wait() == 0
    for result in results:
        assert_returned_uncounted(Task.objects.get(id=result.id))


def test_the_shutdown_timeout_returns_the_rest_uncounted(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker("--concurrency", "2", "--shutdown-timeout", "0.5")
    path = tmp_path / "effects"
    result = tasks.append_and_wait.enqueue(str(path), str(tmp_path / "never"))
    wait_for_line(path)

    worker.terminate()

    assert worker.wait() == 0
    assert_returned_uncounted(Task.objects.get(id=result.id))


def assert_returned_uncounted(task: Task) -> None:
    assert (task.status, task.failures, task.crashes) == ("ready", 0, 0)
    assert Lease.objects.get(task_id=task.id).status == "returned"


@pytest.mark.parametrize("stop", SIGNALS)
def test_an_idle_worker_ends_at_once_and_signs_off(start_worker: StartWorker, stop: Stop) -> None:
    worker = start_worker("--name", "idle")

    stop(worker)

    assert worker.wait() == 0
    row = Worker.objects.get(name="idle")
    assert row.status == "stopped"
    assert row.stopped_at is not None


def test_a_worker_registers_itself_with_what_it_is(start_worker: StartWorker, pool: str) -> None:
    worker = start_worker(
        "--name", "known", "--pool", pool, "--concurrency", "3", "--queues", "mail=2,default"
    )

    row = Worker.objects.get(name="known")

    assert (row.pid, row.status, row.pool, row.concurrency) == (worker.pid, "running", pool, 3)
    assert row.queues == {"mail": 2, "default": 1}
    assert set(row.versions) == {"taskqueue", "django", "python"}
    assert row.host
    before = row.seen_at
    wait_until(lambda: Worker.objects.get(name="known").seen_at > before, what="a ping")


def test_drain_does_what_is_there_and_leaves_the_future(drain: Drain, pool: str) -> None:
    results = tasks.add.enqueue_many([((number,), {}) for number in range(300)])
    later = tasks.noop.using(run_after=3600).enqueue()

    log = drain("--concurrency", "2", "--pool", pool)

    assert "300 recorded" in log
    for number, result in enumerate(results):
        result.refresh()
        assert result.return_value == number + 1
    later.refresh()
    assert later.status == "scheduled"


def test_drain_follows_up_on_retries_that_are_due(drain: Drain) -> None:
    result = tasks.fail_until.enqueue(3)

    drain()

    result.refresh()
    assert result.status == "succeeded"


def test_max_tasks_replaces_children(drain: Drain, pool: str) -> None:
    results = tasks.process_of.enqueue_many([((), {})] * 10)

    drain("--pool", pool, "--concurrency", "1", "--max-tasks", "3")

    processes = []
    for result in results:
        result.refresh()
        processes.append(result.return_value)
    assert max(processes.count(process) for process in processes) == 3
    assert len(set(processes)) == 4


def test_max_memory_replaces_children(start_worker: StartWorker, pool: str) -> None:
    start_worker("--pool", pool, "--concurrency", "1", "--max-memory", "250")

    def process(megabytes: int) -> int:
        return worker_tasks.keep_memory.enqueue(megabytes).wait(60).return_value

    first = process(300)
    # It weighs itself when it has told of the task's end: the next may come before that.
    wait_until(lambda: not psutil.pid_exists(first), what="the end of the heavy child")
    second = process(1)

    assert first != second == process(1)


def test_a_name_is_refused_while_its_worker_lives(start_worker: StartWorker) -> None:
    start_worker("--name", "taken", settings={"PING_INTERVAL": 0.3})
    second = start_worker("--name", "taken", wait_ready=False)

    assert second.wait() == 1
    assert "A worker named 'taken' is alive" in second.log()


def test_a_name_is_taken_over_once_its_worker_was_killed(start_worker: StartWorker) -> None:
    first = start_worker("--name", "heir")
    first.kill()
    first.wait()
    second = start_worker("--name", "heir")

    wait_until(lambda: Worker.objects.get(name="heir").pid == second.pid)

    assert tasks.noop.enqueue().wait(60).worker_names == ["heir"]


def test_children_die_with_a_worker_that_is_killed(start_worker: StartWorker) -> None:
    worker = start_worker("--concurrency", "2")
    tasks.noop.enqueue().wait(60)
    children = psutil.Process(worker.pid).children(recursive=True)
    count = 4 if sys.platform == "linux" else 3
    assert len(children) == count, "two slots, their template, and the guardian that ends them"

    worker.kill()

    gone, alive = psutil.wait_procs(children, timeout=60)
    assert (len(gone), alive) == (count, [])


def test_unapplied_migrations_are_refused(start_worker: StartWorker, tmp_path: Path) -> None:
    names = {"postgresql": "postgres", "sqlite": str(tmp_path / "empty.sqlite3")}
    elsewhere = json.loads(worker_environment({})["TASKQUEUE_TEST_CONNECTION"])
    elsewhere["NAME"] = names[connection.vendor]

    worker = start_worker(
        wait_ready=False, env={"TASKQUEUE_TEST_CONNECTION": json.dumps(elsewhere)}
    )

    assert worker.wait() == 1
    assert "Migrations are not applied: taskqueue.0001_initial" in worker.log()


def test_the_command_has_a_second_name(transactional_db: None) -> None:
    result = tasks.noop.enqueue()
    command = [sys.executable, "-m", "django", "taskqueue_worker", "--drain", "--noreload"]

    ended = subprocess.run(
        command, cwd=ROOT, env=worker_environment({}), timeout=60, capture_output=True
    )

    assert ended.returncode == 0, ended.stderr.decode()
    result.refresh()
    assert result.status == "succeeded"


@pytest.mark.parametrize(
    "arguments",
    [("--strict",), ("--queues", "a,a"), ("--queues", "a=0"), ("--concurrency", "0")],
    ids=" ".join,
)
def test_flags_that_make_no_sense_are_refused(
    start_worker: StartWorker, arguments: tuple[str, ...]
) -> None:
    worker = start_worker(*arguments, wait_ready=False)

    assert worker.wait() != 0
    assert not Worker.objects.exists()


def test_drain_does_what_waits_for_a_place_of_what_it_runs_itself(drain: Drain, pool: str) -> None:
    one = tasks.add.using(concurrency=Concurrency(1, name="one"))
    keyed = tasks.add.using(concurrency=Concurrency(1, key="a"))
    results = one.enqueue_many([((number,), {}) for number in range(20)])
    results += keyed.enqueue_many([((number % 3,), {}) for number in range(20)])
    results += tasks.add.using(sequence=Sequence("b")).enqueue_many([((1, 1), {})] * 10)

    drain("--concurrency", "3", "--pool", pool)

    assert {each.status for each in Task.objects.all()} == {"succeeded"}
    assert len(results) == Task.objects.count()
