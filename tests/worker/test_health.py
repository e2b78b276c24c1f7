"""Answers of a worker's health port in the situations that a probe is there for."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from taskqueue import control
from tests.chaos.proxy import ProxyProcess
from tests.conftest import StartWorker
from tests.sample import tasks
from tests.worker.conftest import through
from tests.worker.health_port import (
    BUSY_OTHERWISE,
    FLAGS,
    WELL,
    health_of,
    port_of,
    wait_for_health,
)
from tests.worker_process import children_of, wait_until

pytestmark = pytest.mark.slow


def test_a_worker_is_ready_while_it_takes_tasks_and_live_until_it_has_ended(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker(
        "--name", "paris", "--concurrency", "1", *FLAGS, settings={"PING_INTERVAL": 0.2}
    )
    wait_for_health(worker, WELL)
    # What children do is not the worker's health: they are ended or replaced.
    [child] = children_of(worker.pid)
    assert all(each.laddr.port != port_of(worker) for each in child.net_connections("tcp"))
    child.send_signal(signal.SIGSTOP)
    assert health_of(worker) == WELL
    child.kill()
    wait_until(lambda: child not in children_of(worker.pid), what="the end of the child")
    wait_for_health(worker, WELL)
    worker.suspend()
    with pytest.raises(TimeoutError):
        health_of(worker, seconds=0.3)
    worker.resume()
    wait_for_health(worker, WELL)

    started, go = tmp_path / "started", tmp_path / "go"
    tasks.append_and_wait.enqueue(str(started), str(go))
    wait_until(started.exists, what="a body")
    assert health_of(worker) == WELL
    control.quiet_worker("paris")
    wait_for_health(worker, BUSY_OTHERWISE)
    worker.terminate()
    wait_until(lambda: "Stopping" in worker.log(), what="a worker that drains")
    assert health_of(worker) == BUSY_OTHERWISE
    go.touch()
    assert worker.wait() == 0
    with pytest.raises(ConnectionRefusedError):
        health_of(worker)


def test_a_worker_whose_port_is_taken_refuses_to_start(start_worker: StartWorker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        worker = start_worker("--health-port", str(port), wait_ready=False)
        assert worker.wait() == 1
    [said] = worker.log().splitlines()
    assert f"Cannot listen on 127.0.0.1:{port}: Address already in use." in said


@pytest.mark.postgresql_only
def test_a_database_that_falls_silent_leaves_the_worker_live_and_not_ready(
    start_worker: StartWorker, proxy: ProxyProcess
) -> None:
    worker = start_worker(
        "--concurrency", "1", "--shutdown-timeout", "600", *FLAGS,
        env=through(proxy),
        settings={"LEASE_DURATION": 2, "PING_INTERVAL": 0.2},
    )  # fmt: skip
    wait_for_health(worker, WELL)
    for trouble in ("freeze", "refuse"):
        proxy.tell(trouble)
        wait_for_health(worker, BUSY_OTHERWISE)
        proxy.tell("cut")
        wait_for_health(worker, WELL)
    # It holds nothing: to wait for the database would only be to say goodbye.
    proxy.tell("refuse")
    wait_for_health(worker, BUSY_OTHERWISE)
    worker.terminate()
    assert worker.wait(60) == 0, "well before its time to shut down in is over"
    assert "could not sign off" in worker.log()
