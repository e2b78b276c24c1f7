"""Invariant 8: once a fault is over, every due task ends, and no worker is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import psutil
import pytest
from django.db import connection
from django.db.models import Sum
from django.db.utils import InterfaceError, OperationalError

from project.postgres import Server
from taskqueue.models import Lease, Task
from tests.conftest import StartWorker
from tests.guarantees.history import (
    Journal,
    all_ended,
    assert_atomic_effects,
    assert_none_lost,
    assert_ownership_does_not_overlap,
    assert_rollups_count_every_attempt,
    assert_starts_are_bounded,
)
from tests.guarantees.mixture import Mixture
from tests.sample import tasks, worker_tasks
from tests.sample.models import Effect
from tests.worker_process import WorkerProcess, end_other_sessions, wait_until

pytestmark = pytest.mark.slow


@pytest.mark.postgresql_only
@pytest.mark.parametrize("mode", ["immediate", "fast"])
def test_three_restarts_of_postgresql_lose_nothing_and_count_no_crash(
    start_worker: StartWorker,
    postgresql_server: Server,
    journal: Journal,
    tmp_path: Path,
    mode: Literal["fast", "immediate"],
) -> None:
    # So that no outage here is one: replaying the log may take a busy host half a minute.
    patient = {"LEASE_DURATION": 120, "PING_INTERVAL": 5}
    workers = [
        start_worker("--pool", pool, "--concurrency", "2", settings=patient)
        for pool in ("process", "process", "thread")
    ]
    end = tmp_path / "end"
    long = worker_tasks.beat.enqueue(str(journal.path), str(end))
    mixture = [
        definition.enqueue(str(journal.path), 0.05)
        for _ in range(150)
        for definition in (worker_tasks.work_hard, worker_tasks.work_atomically)
    ]
    for restart in range(1, 4):
        wait_until(lambda n=restart: len(journal.starts()) > n * 50, 60, what="some work")
        shorten_the_log()
        postgresql_server.restart(mode)
        connection.close()
    end.touch()
    wait_until(lambda: all_ended([long, *mixture]), 120, what="the end of all tasks")

    assert_none_lost([long, *mixture])
    assert set(Task.objects.values_list("status", "crashes")) == {("succeeded", 0)}
    assert_atomic_effects(mixture[1::2])
    assert_ownership_does_not_overlap(journal)
    assert_starts_are_bounded([long, *mixture])
    assert_rollups_count_every_attempt()
    long.refresh()
    assert long.attempts == 1
    assert [worker.returncode for worker in workers] == [None] * 3
    for worker in workers:
        worker.terminate()
    assert [worker.wait() for worker in workers] == [0] * 3
    for worker in workers:
        assert worker.log().count("Database away") <= 6, "said once for each outage"


@pytest.mark.postgresql_only
def test_a_long_outage_ends_bodies_before_their_leases_and_counts_no_crash(
    start_worker: StartWorker,
    postgresql_server: Server,
    journal: Journal,
    tmp_path: Path,
    short_lease: dict[str, Any],
) -> None:
    short_lease["LEASE_DURATION"] = 12  # Longer than a busy machine delays a ping.
    worker = start_worker("--concurrency", "1", settings=short_lease)
    end = tmp_path / "end"
    result = worker_tasks.beat.enqueue(str(journal.path), str(end))
    wait_until(lambda: len(journal.of(result)) > 3)

    body = journal.of(result)[0].pid
    postgresql_server.stop("immediate")
    wait_until(lambda: not psutil.pid_exists(body), 60, what="the end of the body")
    postgresql_server.start()
    connection.close()

    wait_until(lambda: any(line.attempt == 2 for line in journal.of(result)), 120)
    end.touch()
    assert result.wait(60).return_value == 2
    assert Task.objects.get(id=result.id).crashes == 0
    assert [lease.status for lease in Lease.objects.order_by("attempt")] == ["lost", "succeeded"]
    assert worker.returncode is None


def shorten_the_log() -> None:
    """Leave little to replay of what the tests before have written."""
    with connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")


@pytest.mark.postgresql_only
def test_terminated_backends_are_replaced_and_nothing_is_doubled(
    start_worker: StartWorker, journal: Journal
) -> None:
    workers = [start_worker("--pool", pool, "--concurrency", "2") for pool in ("process", "thread")]
    mixture = Mixture(journal, rounds=30)
    for round in range(1, 8):
        wait_until(lambda n=round: len(journal.lines()) >= n * 10, 60, what="some work")
        end_other_sessions()
    wait_until(lambda: all_ended(mixture.all), 120, what="the end of all tasks")

    assert_none_lost(mixture.all)
    assert_atomic_effects(mixture.atomic)
    assert_starts_are_bounded(mixture.all)
    assert_ownership_does_not_overlap(journal)
    # Bodies that end their process take its other attempts along; no backend's end is a crash.
    ended = Lease.objects.filter(error_message="The child process died: exit code 1.")
    assert Task.objects.aggregate(crashes=Sum("crashes"))["crashes"] == ended.count()
    assert [worker.returncode for worker in workers] == [None] * 2


@pytest.mark.postgresql_only
def test_a_worker_can_be_stopped_while_its_database_is_away(
    start_worker: StartWorker, postgresql_server: Server
) -> None:
    worker = start_worker("--shutdown-timeout", "2")
    tasks.noop.enqueue().wait(60)

    postgresql_server.stop("immediate")
    worker.terminate()

    assert worker.wait(60) == 0


@pytest.mark.sqlite_only
@pytest.mark.parametrize(("lease", "ping"), [(6, 1), (6, 2)])
def test_a_body_that_holds_the_write_lock_beyond_its_lease_is_let_be(
    start_worker: StartWorker, short_lease: dict[str, Any], pool: str, lease: float, ping: float
) -> None:
    short_lease |= {"LEASE_DURATION": lease, "PING_INTERVAL": ping}
    workers: list[WorkerProcess] = [
        start_worker("--pool", pool, "--concurrency", "1", settings=short_lease) for _ in range(2)
    ]
    result = worker_tasks.hold_write_lock.enqueue(2 * lease)
    running = Lease.objects.filter(task_id=result.id)
    wait_until(running.exists, what="a claim")

    finished = wait_until(lambda: result_of(result.id), 90, what="the end of the body")

    assert (finished.status, finished.attempt, finished.crashes) == ("succeeded", 1, 0)
    assert Effect.objects.filter(note="held the lock").count() == 1
    assert running.get().status == "succeeded"
    assert [worker.returncode for worker in workers] == [None, None]
    after = tasks.noop.enqueue()
    assert after.wait(60).status == "succeeded"


def result_of(task_id: object) -> Task | None:
    try:
        return Task.objects.filter(id=task_id, finished_at__isnull=False).first()
    except (OperationalError, InterfaceError):
        return None
