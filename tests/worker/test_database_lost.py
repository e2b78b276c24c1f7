"""Bodies whose database goes away when they have nothing to do with it."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import connection

from taskqueue import chain
from taskqueue.models import Lease, Task
from tests.conftest import StartWorker
from tests.sample import tasks, typed_tasks, worker_tasks
from tests.sample.models import Effect
from tests.worker_process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.postgresql_only]


def end_session(pid: int) -> None:
    """End one that waits between two statements of its transaction, and return once it is gone."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity "
            "WHERE pid = %s AND state = 'idle in transaction' AND datname = current_database()",
            [pid],
        )
        assert cursor.fetchall() == [(True,)]


def test_an_atomic_body_that_returned_is_run_again_when_its_record_met_no_database(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker("--concurrency", "1")
    said, go = tmp_path / "said", tmp_path / "go"
    result = worker_tasks.wait_atomically.enqueue(str(said), str(go))
    line = wait_until(lambda: said.read_text() if said.exists() else "", what="a body")
    end_session(int(line.split()[-1]))
    go.touch()
    assert result.wait(60).status == "succeeded"
    task = Task.objects.get(id=result.id)
    assert (task.failures, task.crashes) == (0, 0)
    statuses = Lease.objects.filter(task=task).order_by("attempt").values_list("status", flat=True)
    assert list(statuses) == ["lost", "succeeded"]
    assert tasks.noop.enqueue().wait(60).status == "succeeded"


@pytest.mark.parametrize("kind", ["inputs", "workflow", "row"])
def test_a_step_whose_inputs_met_no_database_runs_again(
    kind: str, start_worker: StartWorker
) -> None:
    effect = Effect.objects.create(task_id=uuid4(), attempt=1, note="editors")
    step = {
        "inputs": tasks.echo.s(),
        # Read before the body, for an `async def` body cannot ask the database.
        "workflow": typed_tasks.typed_async.si(date(2026, 2, 3)),
        "row": typed_tasks.read_row.using(unique_key=None).si(effect.pk, date(2026, 2, 3)),
    }[kind]
    start_worker("--concurrency", "1")
    run = chain(worker_tasks.end_own_session.s(), step).enqueue()
    run.wait(60)
    assert run.status == "succeeded", run.errors
    task = Task.objects.exclude(name=worker_tasks.end_own_session.name).get()
    assert (task.failures, task.crashes) == (0, 0)
    statuses = Lease.objects.filter(task=task).order_by("attempt").values_list("status", flat=True)
    assert list(statuses) == ["lost", "succeeded"]
