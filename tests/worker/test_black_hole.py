"""A network that swallows everything for longer than a lease, and comes back."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from django.utils import timezone

from taskqueue.models import Worker
from tests.chaos.proxy import ProxyProcess
from tests.conftest import StartWorker
from tests.sample import tasks
from tests.worker.conftest import through
from tests.worker_process import children_of, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.postgresql_only]

LEASE = 2.0
SETTINGS = {"LEASE_DURATION": LEASE, "PING_INTERVAL": 0.2, "CRASH_DELAY": 0.1}


def await_ping() -> None:
    """Wait until the worker has given a sign of life since now."""
    began_at = timezone.now()
    wait_until(Worker.objects.filter(seen_at__gt=began_at).exists, 60, what="a ping")


def test_children_that_hold_nothing_live_through_it(
    start_worker: StartWorker, proxy: ProxyProcess
) -> None:
    worker = start_worker("--concurrency", "2", env=through(proxy), settings=SETTINGS)
    assert tasks.noop.enqueue().wait(60).status == "succeeded"
    before = {each.pid for each in children_of(worker.pid)}
    # The second ping began after the child had nothing left.
    await_ping()
    await_ping()

    proxy.tell("freeze")
    time.sleep(1.5 * LEASE)
    proxy.tell("open")

    await_ping()
    # Before one of them holds something again, which on a busy machine may end it.
    assert {each.pid for each in children_of(worker.pid)} == before
    assert tasks.noop.enqueue().wait(60).status == "succeeded"


def test_a_child_that_starts_in_the_midst_of_it_is_there_after_it(
    start_worker: StartWorker, proxy: ProxyProcess, tmp_path: Path
) -> None:
    worker = start_worker("--concurrency", "1", env=through(proxy), settings=SETTINGS)
    started, go = tmp_path / "started", tmp_path / "go"
    result = tasks.append_and_wait.enqueue(str(started), str(go))
    wait_until(started.exists, what="a body")
    [child] = wait_until(lambda: children_of(worker.pid), what="its child")

    proxy.tell("freeze")
    go.touch()
    # What it ran is over, or was ended before anybody else may run it.
    with suppress(psutil.NoSuchProcess):
        child.kill()
    wait_until(lambda: child not in children_of(worker.pid), what="the end of the child")
    [born] = wait_until(lambda: children_of(worker.pid), what="another child")
    time.sleep(1.5 * LEASE)
    proxy.tell("open")

    await_ping()
    assert children_of(worker.pid) == [born]
    assert result.wait(60).status == "succeeded"
    assert "did not start" not in worker.log()
