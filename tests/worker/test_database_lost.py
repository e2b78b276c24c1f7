"""An atomic body whose database goes away when the body has nothing to do with it."""

from __future__ import annotations

import pytest
from django.db import connection

from taskqueue.models import Lease, Task
from tests.conftest import StartWorker
from tests.sample import tasks, worker_tasks
from tests.worker_process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.postgresql_only]


def end_idle_transactions() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE state = 'idle in transaction' AND datname = current_database() "
            # Not one between two statements: only a body sleeps.
            "AND state_change < clock_timestamp() - interval '0.5 seconds'"
        )
        return int(cursor.fetchone()[0])


def test_an_atomic_body_that_returned_is_run_again_when_its_record_met_no_database(
    start_worker: StartWorker,
) -> None:
    start_worker("--concurrency", "1")
    result = worker_tasks.sleep_atomically.enqueue(1.5)
    wait_until(end_idle_transactions, 20, what="a body in its transaction")
    assert result.wait(60).status == "succeeded"
    task = Task.objects.get(id=result.id)
    assert (task.failures, task.crashes) == (0, 0)
    statuses = Lease.objects.filter(task=task).order_by("attempt").values_list("status", flat=True)
    assert list(statuses) == ["lost", "succeeded"]
    assert tasks.noop.enqueue().wait(30).status == "succeeded"
