"""A signal to the worker and its children at once, as supervisors may send it."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from taskqueue.models import Task, Worker
from tests.conftest import StartWorker
from tests.sample.tasks import append_and_wait
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("pool", ["process", "thread"])
def test_a_signal_that_reaches_the_children_too_lets_their_bodies_finish(
    number: signal.Signals, pool: str, start_worker: StartWorker, tmp_path: Path
) -> None:
    effects, gate = tmp_path / "effects", tmp_path / "gate"
    worker = start_worker("--pool", pool, "--concurrency", "1")
    result = append_and_wait.enqueue(str(effects), str(gate))
    wait_until(effects.exists, 60)
    parent = psutil.Process(worker.pid)
    for process in (*parent.children(recursive=True), parent):
        process.send_signal(number)
    wait_until(Worker.objects.filter(status="stopping").exists, 60)
    gate.touch()
    assert worker.wait(60) == 0
    result.refresh()
    assert (result.status, result.attempts) == ("succeeded", 1)
    assert Task.objects.get().crashes == 0
