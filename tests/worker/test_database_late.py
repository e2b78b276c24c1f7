"""A worker that is started while its database is away waits for it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection

from taskqueue.models import Task
from taskqueue.worker.wakeup import until_reached
from tests.conftest import StartWorker
from tests.sample import tasks
from tests.sharing_out import DATABASE
from tests.worker.health_port import BUSY_OTHERWISE, FLAGS, health_of
from tests.worker_process import WorkerProcess, wait_until, worker_environment

WAITS = "Database away, waiting for it"


def elsewhere(name: str) -> dict[str, str]:
    """An environment in which the database has another name."""
    own = json.loads(worker_environment({})["TASKQUEUE_TEST_CONNECTION"])
    return {"TASKQUEUE_TEST_CONNECTION": json.dumps({**own, "NAME": name})}


@contextmanager
def away(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """A database that comes when the block ends, and how a worker finds it."""
    if DATABASE == "postgresql":
        server = request.getfixturevalue("postgresql_server")
        connection.close()
        found = elsewhere(connection.settings_dict["NAME"])
        server.stop()
        yield found
        server.start()
        return
    path = Path(connection.settings_dict["NAME"])
    yield elsewhere(str(tmp_path / "later" / path.name))
    os.symlink(path.parent, tmp_path / "later")


def wait_until_waiting(worker: WorkerProcess) -> None:
    wait_until(lambda: WAITS in worker.log(), what="a worker that waits")


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["--drain"], []], ids=["drain", "serve"])
def test_a_worker_begins_when_its_database_is_there(
    start_worker: StartWorker, tmp_path: Path, request: pytest.FixtureRequest, flags: list[str]
) -> None:
    result = tasks.noop.enqueue()
    with away(tmp_path, request) as found:
        worker = start_worker(*flags, *FLAGS, env=found, wait_ready=False)
        wait_until_waiting(worker)
        assert health_of(worker) == BUSY_OTHERWISE
    wait_until(lambda: Task.objects.filter(id=result.id, status="succeeded").exists(), 60)
    if not flags:
        worker.terminate()
    assert worker.wait() == 0
    assert "Traceback" not in worker.log()
    assert "Database back" in worker.log()


@pytest.mark.slow
@pytest.mark.parametrize("stop", [WorkerProcess.terminate, WorkerProcess.interrupt])
def test_a_worker_that_waits_for_its_database_logs_why_and_stops_at_once(
    start_worker: StartWorker, tmp_path: Path, stop: Callable[[WorkerProcess], None]
) -> None:
    name = "no_such" if DATABASE == "postgresql" else str(tmp_path / "no" / "such")
    worker = start_worker(env=elsewhere(name), wait_ready=False)
    wait_until_waiting(worker)
    stop(worker)
    assert worker.wait() == 0
    [said] = worker.log().splitlines()
    reason = "does not exist" if DATABASE == "postgresql" else "unable to open database file"
    assert reason in said


def test_each_reason_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    answers: Iterator[Any] = iter(
        [OperationalError("refused"), OperationalError("refused"), OperationalError("no\nroom"), 7]
    )

    def step() -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert until_reached(step, is_stopping=lambda: False) == 7
    errors = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert errors == [f"{WAITS} error=refused", f"{WAITS} error=no room"]


def test_nothing_is_tried_once_it_is_time_to_stop() -> None:
    assert until_reached(lambda: 1 / 0, is_stopping=lambda: True) is None
