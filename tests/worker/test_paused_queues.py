"""Workers and paused queues: they leave them, do not spin for them, and come back at once."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from django.db import connection
from django.db.models import F

from taskqueue import Fixed
from taskqueue.control import pause, resume
from taskqueue.models import Lease, Queue, Task, Worker
from taskqueue.results import TaskResult
from tests.conftest import Drain, StartWorker
from tests.sample import tasks
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--queues", "mail"],
        ["--queues", "mail=5,default"],
        ["--queues", "mail,default", "--strict"],
    ],
    ids=["all", "one", "weighted", "strict"],
)
def test_a_drain_leaves_paused_tasks_and_exits(drain: Drain, flags: list[str]) -> None:
    paused = tasks.noop.using(queue_name="mail").enqueue_many([((), {})] * 50)
    other = tasks.noop.enqueue_many([((), {})] * 50)
    pause("mail", reason="the relay is down")

    drain(*flags)

    served = "succeeded" if flags != ["--queues", "mail"] else "ready"
    assert statuses(other) == {served}
    assert statuses(paused) == {"ready"}
    assert not Lease.objects.filter(task_id__in=[each.id for each in paused]).exists()


def statuses(results: list[object]) -> set[str]:
    ids = [result.id for result in results]  # type: ignore[attr-defined]
    return set(Task.objects.filter(id__in=ids).values_list("status", flat=True))


def test_a_pause_lets_running_tasks_end_and_a_resume_starts_the_rest(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker("--concurrency", "1", settings={"CLAIM_AHEAD": 0})
    go = tmp_path / "go"
    running = tasks.append_and_wait.enqueue(str(tmp_path / "effects"), str(go))
    wait_until((tmp_path / "effects").exists, what="a running body")
    waiting = tasks.noop.enqueue()

    pause("default")
    go.touch()

    assert running.wait(60).status == "succeeded"
    elsewhere = tasks.noop.using(queue_name="other").enqueue()
    assert elsewhere.wait(60).status == "succeeded"
    waiting.refresh()
    assert waiting.status == "ready"
    resume("default")
    assert waiting.wait(60).status == "succeeded"


def test_a_retry_waits_for_the_end_of_the_pause(start_worker: StartWorker) -> None:
    start_worker("--concurrency", "1")
    result = tasks.fail_until.using(max_attempts=3, backoff=Fixed(600)).enqueue(2)
    wait_until(lambda: Task.objects.get(id=result.id).failures, what="a failure")
    pause("default")
    Task.objects.filter(id=result.id).update(run_after=F("enqueued_at"))
    wait_until(lambda: Task.objects.get(id=result.id).status == "ready", what="a promotion")
    pause("default", until=timedelta(seconds=3))
    paused_until = Queue.objects.get(name="default").paused_until

    assert result.wait(60).status == "succeeded"
    assert Lease.objects.get(task_id=result.id, attempt=2).claimed_at >= paused_until


@pytest.mark.direct_only
@pytest.mark.postgresql_only
@pytest.mark.parametrize("flags", [[], ["--queues", "default"], ["--queues", "default,mail"]])
def test_a_resume_wakes_an_idle_worker_long_before_its_poll(
    start_worker: StartWorker, flags: list[str]
) -> None:
    start_worker("--poll-interval", "600", *flags)
    tasks.noop.enqueue().wait(60)
    wait_until(Worker.objects.filter(is_idle=True).exists, what="an idle worker")
    pause("default")
    result = tasks.noop.enqueue()
    wait_until(lambda: has_rested_since(result), what="a look in vain")
    result.refresh()
    assert result.status == "ready"

    resume("default")

    assert result.wait(60).status == "succeeded"  # Its poll is ten minutes after its last look.


# Seconds for which a worker is watched, and how many transactions it may begin in one of them. It
# looks once a second and pings; all of its duties together are some thirty statements, once a
# minute. One that looks again and again has hundreds a second, on a busy machine tens.
WATCHED, MOST_TRANSACTIONS = 8.0, 12


@pytest.mark.direct_only
def test_a_worker_with_nothing_but_paused_tasks_rests(start_worker: StartWorker) -> None:
    """`test_rest` counts its requests exactly; this is about the process as a whole."""
    worker = start_worker("--concurrency", "1")
    tasks.noop.enqueue().wait(60)  # Its child has started.
    pause("default")
    paused = tasks.noop.enqueue_many([((), {})] * 300)
    if connection.vendor == "postgresql":
        wait_until(Worker.objects.filter(is_idle=True).exists, what="an idle worker")
        wait_until(lambda: has_rested_since(paused[-1]), what="a look in vain")
    process = psutil.Process(worker.pid)
    spent, begun, at = sum(process.cpu_times()[:2]), transactions(), time.monotonic()

    time.sleep(WATCHED)

    watched = time.monotonic() - at
    assert sum(process.cpu_times()[:2]) - spent < watched / 4
    assert transactions() - begun < MOST_TRANSACTIONS * watched
    assert statuses(paused) == {"ready"}


def transactions() -> int:
    """Return the transactions that PostgreSQL has counted; 0 on SQLite, which counts none."""
    if connection.vendor != "postgresql":
        return 0
    with connection.cursor() as cursor:
        cursor.execute(TRANSACTIONS)
        return int(cursor.fetchone()[0])


TRANSACTIONS = """
    SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()
"""


def has_rested_since(result: TaskResult[None]) -> bool:
    """Whether a worker has looked for tasks since that one came, and then sent nothing more."""
    enqueued_at = Task.objects.get(id=result.id).enqueued_at
    with connection.cursor() as cursor:
        cursor.execute(LOOKED_AND_RESTED, [enqueued_at])
        return bool(cursor.fetchone()[0])


# For less than a worker lets pass between two looks while nothing happens.
LOOKED_AND_RESTED = """
    SELECT EXISTS (
        SELECT
        FROM pg_stat_activity
        WHERE datname = current_database()
            AND pid <> pg_backend_pid()
            AND backend_type = 'client backend'
            AND state = 'idle'
            AND query LIKE '%%taskqueue_task%%'
            AND query_start > %s
            AND state_change < clock_timestamp() - interval '0.3 s'
    )
"""
