"""Workers behind PgBouncer: no other client of the pool notices them, and they do their work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from django.db import connection

from taskqueue.models import Task, TaskLog, Worker
from tests.conftest import StartWorker, require_tool
from tests.pooler import MODES, PROGRAM, Mode, Pooler
from tests.sample import tasks
from tests.worker.conftest import through
from tests.worker_process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.postgresql_only]
LEASE = 6
SETTINGS = {"LEASE_DURATION": LEASE, "PING_INTERVAL": 1}
OpenPooler = Callable[..., Pooler]


@pytest.fixture
def open_pooler(transactional_db: None) -> Iterator[OpenPooler]:
    """Start PgBouncer in front of the test database: `open_pooler("session", size=2)`."""
    require_tool(PROGRAM)
    with ExitStack() as stack:
        yield lambda mode, size: stack.enter_context(
            Pooler(connection.settings_dict, mode, size=size)
        )


def test_other_clients_of_the_pool_notice_no_worker(
    start_worker: StartWorker, open_pooler: OpenPooler
) -> None:
    pooler = open_pooler("transaction", size=1)  # What one leaves behind, the next one meets.
    before = pooler.session_state()
    worker = start_worker(env=through(pooler), settings=SETTINGS)
    for _ in range(3):  # Idle between them, and often enough that statements would be prepared.
        tasks.noop.enqueue().wait(timeout=60)
        assert pooler.session_state() == before
    assert Worker.objects.get().listens is False
    tasks.sleep.enqueue(60)
    wait_until(lambda: Worker.objects.filter(running_leases=1).exists(), 60, what="a ping")
    assert pooler.session_state() == before
    worker.kill()
    worker.wait()
    assert pooler.session_state() == before


def test_transactions_of_other_clients_may_be_idle_for_longer_than_those_of_workers(
    start_worker: StartWorker, open_pooler: OpenPooler
) -> None:
    pooler = open_pooler("transaction", size=2)
    start_worker(env=through(pooler), settings=SETTINGS)
    tasks.noop.enqueue().wait(timeout=60)
    with ExitStack() as stack:
        # Each of the pool's connections, with whatever the worker has left there.
        clients = [stack.enter_context(pooler.connect()) for _ in range(2)]
        for client in clients:
            client.execute("BEGIN")
        # How long they are idle: for longer than workers let their own be, a third of a lease.
        time.sleep(LEASE / 3 + 1)
        for client in clients:
            client.execute("COMMIT")
    tasks.noop.enqueue().wait(timeout=60)


def test_workers_that_share_a_small_pool_lose_nothing_under_load(
    start_worker: StartWorker, open_pooler: OpenPooler
) -> None:
    pooler = open_pooler("transaction", size=3)
    workers = [
        start_worker("--pool", pool, "--concurrency", "2", env=through(pooler), wait_ready=False)
        for pool in ("process", "thread")
    ]
    results = tasks.talk.enqueue_many([((2,), {})] * 200)
    for result in results:
        result.wait(timeout=120)
    wait_until(lambda: TaskLog.objects.count() == 600, 60, what="the lines of all")
    assert set(Task.objects.values_list("status", "crashes")) == {("succeeded", 0)}
    assert set(Worker.objects.values_list("listens", flat=True)) == {False}
    for worker in workers:
        worker.terminate()
        assert worker.wait(60) == 0
        log = worker.log()
        assert not [word for word in ("refused", "dropped", "prepared", "away") if word in log]


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_that_ends_leaves_the_pool_as_it_was(
    start_worker: StartWorker, open_pooler: OpenPooler, mode: Mode
) -> None:
    pooler = open_pooler(mode, size=4)
    before = pooler.session_state()
    worker = start_worker(env=through(pooler), settings=SETTINGS)
    result = tasks.mark_atomically.enqueue()
    assert result.wait(timeout=60).return_value == "committed"
    worker.terminate()
    assert worker.wait(60) == 0
    with ExitStack() as stack:
        clients = [stack.enter_context(pooler.connect()) for _ in range(4)]
        for client in clients:
            client.execute("BEGIN")
            assert pooler.session_state(client) == before
