"""Bodies whose database goes away when they have nothing to do with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import OperationalError, connection

from taskqueue import chain
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.models import Lease, Task
from taskqueue.worker.bodies.execution import AWAY_PAUSE
from tests.conftest import StartWorker
from tests.sample import tasks, typed_tasks, worker_tasks
from tests.sample.models import Effect
from tests.worker.test_newer_tasks import run
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


@contextmanager
def nobody_connects() -> Iterator[None]:
    """Let the server refuse whoever connects to the test database; open sessions go on."""
    let = "UPDATE pg_database SET datallowconn = %s WHERE datname = current_database()"
    with connection.cursor() as cursor:
        cursor.execute(let, [False])
        try:
            yield
        finally:
            cursor.execute(let, [True])


def test_a_child_that_cannot_connect_does_not_try_as_fast_as_it_can(
    start_worker: StartWorker,
) -> None:
    effect = Effect.objects.create(task_id=uuid4(), attempt=1, note="editors")
    start_worker("--concurrency", "1")
    assert tasks.noop.enqueue().wait(60).status == "succeeded"
    with nobody_connects():
        result = typed_tasks.read_row.using(unique_key=None).enqueue(effect, date(2026, 2, 3))
        lost = Lease.objects.filter(task_id=result.id, status="lost").order_by("attempt")
        wait_until(lambda: lost.count() >= 3, what="three attempts")
    first, *_, third = lost.values_list("claimed_at", flat=True)[:3]
    assert (third - first).total_seconds() >= 2 * AWAY_PAUSE
    assert result.wait(60).status == "succeeded"


@pytest.mark.django_db
def test_a_row_of_another_database_that_is_away_counts_as_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def loaded(self: Any, args: Any, kwargs: Any) -> Any:
        raise OperationalError("connection failed") from psycopg.OperationalError()

    monkeypatch.setattr(BaseDefinition, "loaded", loaded)
    assert run(tasks.echo.name, {}, "[1]").kind == OutcomeKind.FAILED
