"""Bodies whose database goes away when they have nothing to do with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
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
from taskqueue.results import TaskResult
from taskqueue.worker.bodies.verdicts import AWAY_PAUSE
from taskqueue.worker.unreached import LONGEST_PAUSE, Unreached
from tests.conftest import Drain, StartWorker
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


def test_a_drain_waits_for_a_task_whose_inputs_met_no_database(drain: Drain) -> None:
    run = chain(worker_tasks.end_own_session.s(), tasks.echo.s()).enqueue()
    drain("--concurrency", "1")
    run.refresh()
    assert run.status == "succeeded", run.errors
    assert Lease.objects.filter(status="lost").count() == 1


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


def enqueue_row() -> TaskResult[str]:
    """A body that is given a row, which is read before it begins."""
    effect = Effect.objects.create(task_id=uuid4(), attempt=1, note="editors")
    return typed_tasks.read_row.using(unique_key=None).enqueue(effect, date(2026, 2, 3))


@pytest.mark.parametrize("enqueue", [enqueue_row, tasks.mark_atomically.enqueue])
def test_a_child_that_cannot_connect_does_not_try_as_fast_as_it_can(
    enqueue: Callable[[], TaskResult[str]], start_worker: StartWorker
) -> None:
    start_worker("--concurrency", "1")
    assert tasks.noop.enqueue().wait(60).status == "succeeded"
    with nobody_connects():
        result = enqueue()
        lost = Lease.objects.filter(task_id=result.id, status="lost").order_by("attempt")
        wait_until(lambda: lost.count() >= 3, what="three attempts")
    first, *_, third = lost.values_list("claimed_at", flat=True)[:3]
    assert (third - first).total_seconds() >= 2 * AWAY_PAUSE
    assert result.wait(60).status == "succeeded"


def test_children_that_cannot_connect_are_logged_once_and_run_other_tasks(
    start_worker: StartWorker,
) -> None:
    worker = start_worker("--concurrency", "1")
    assert tasks.noop.enqueue().wait(60).status == "succeeded"
    with nobody_connects():
        result = enqueue_row()
        lost = Lease.objects.filter(task_id=result.id, status="lost").order_by("attempt")
        wait_until(lambda: lost.count() >= 3, what="three attempts")
        assert tasks.noop.enqueue().wait(60).status == "succeeded"
        assert Task.objects.get(id=result.id).status != "succeeded"
    assert result.wait(60).status == "succeeded"
    log = wait_until(
        lambda: worker.log() if "Children reach the database again" in worker.log() else ""
    )
    assert log.count("Children cannot reach the database, tasks wait") == 1
    assert "without a renewed lease" not in log
    assert lost[0].started_at is None
    assert lost[0].error_message.startswith("The child process could not reach the database: ")


@pytest.mark.django_db
def test_a_body_that_met_no_database_is_handed_back_without_a_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wait in the child would hold up other bodies on its event loop."""

    def loaded(self: Any, args: Any, kwargs: Any) -> Any:
        raise OperationalError("connection failed") from psycopg.OperationalError()

    monkeypatch.setattr(BaseDefinition, "loaded", loaded)
    monkeypatch.setattr(connection, "errors_occurred", True)
    monkeypatch.setattr(time, "sleep", pytest.fail)
    outcome = run(tasks.echo.name, {}, "[1]")
    assert (outcome.kind, outcome.started, outcome.delay) == ("fenced", None, AWAY_PAUSE)


def test_the_pauses_grow_up_to_a_bound_and_end_when_a_body_begins() -> None:
    unreached, now = Unreached(), 0.0
    pauses = []
    for _ in range(12):
        assert unreached.names() == []
        for name in ("a", "b"):  # Side by side.
            unreached.begin(name, "connection failed", shortest=AWAY_PAUSE, now=now)
        assert sorted(unreached.names()) == ["a", "b"]
        assert not unreached.takes_turn(unreached.retry_at - 0.01)
        pauses.append(unreached.retry_at - now)
        now = unreached.retry_at
        assert unreached.takes_turn(now)
    assert AWAY_PAUSE <= pauses[0] <= 1.5 * AWAY_PAUSE
    assert 2 * AWAY_PAUSE <= pauses[1] <= 3 * AWAY_PAUSE
    assert all(LONGEST_PAUSE <= pause <= 1.5 * LONGEST_PAUSE for pause in pauses[-4:])
    assert len(set(pauses[-4:])) > 1
    unreached.begin("a", "connection failed", shortest=AWAY_PAUSE, now=now)
    unreached.reached("c")
    assert sorted(unreached.names()) == ["a", "b"]
    unreached.reached("b")
    assert unreached.names() == []
    unreached.begin("a", "connection failed", shortest=AWAY_PAUSE, now=now)
    assert unreached.retry_at - now <= 1.5 * AWAY_PAUSE


@pytest.mark.django_db
def test_a_row_of_another_database_that_is_away_counts_as_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def loaded(self: Any, args: Any, kwargs: Any) -> Any:
        raise OperationalError("connection failed") from psycopg.OperationalError()

    monkeypatch.setattr(BaseDefinition, "loaded", loaded)
    assert run(tasks.echo.name, {}, "[1]").kind == OutcomeKind.FAILED
