"""Leases while others hold locks: on the row of a lease, or on the table of tasks."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.db.transaction import atomic

from taskqueue.models import Lease
from tests.conftest import StartWorker
from tests.sample import tasks
from tests.worker_process import children_of, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.postgresql_only]

SETTINGS = {"LEASE_DURATION": 6, "PING_INTERVAL": 0.5, "CRASH_DELAY": 0.1}


def test_a_body_ends_before_another_worker_may_take_its_task_over(
    start_worker: StartWorker, pool: str, tmp_path: Path
) -> None:
    arguments = ("--pool", pool, "--concurrency", "1")
    first = start_worker(*arguments, "--name", "first", settings=SETTINGS)
    started, go = tmp_path / "started", tmp_path / "go"
    result = tasks.append_and_wait.enqueue(str(started), str(go))
    wait_until(started.exists, what="a body")
    [child] = children_of(first.pid)
    start_worker(*arguments, "--name", "second", settings=SETTINGS)

    with atomic():
        lease = Lease.objects.select_for_update().get(task_id=result.id)
        assert lease.status == "running"
        wait_until(lambda: not child.is_running(), what="the end of the body")
        # It ended in time: nobody could renew the lease or take it over meanwhile.
        lease.refresh_from_db()
        assert lease.status == "running"
    go.touch()

    assert result.wait(60).status == "succeeded"
    statuses = Lease.objects.filter(task_id=result.id).order_by("id").values_list("status")
    assert [status for (status,) in statuses] == ["lost", "succeeded"]
    result.refresh()
    assert started.read_text().count("started") == 2


def test_leases_are_renewed_while_the_table_of_tasks_is_locked(
    start_worker: StartWorker, pool: str, tmp_path: Path
) -> None:
    start_worker("--pool", pool, "--concurrency", "1", settings=SETTINGS)
    started, go = tmp_path / "started", tmp_path / "go"
    result = tasks.append_and_wait.enqueue(str(started), str(go))
    wait_until(started.exists, what="a body")
    leases = Lease.objects.filter(task_id=result.id)

    with atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE taskqueue_task IN ACCESS EXCLUSIVE MODE")
        deadline = leases.get().expires_at + timedelta(seconds=SETTINGS["LEASE_DURATION"])
        wait_until(lambda: leases.filter(expires_at__gt=deadline).exists(), 60, what="renewals")
    go.touch()

    assert result.wait(60).status == "succeeded"
    assert [lease.status for lease in leases] == ["succeeded"]
