"""SQLite has one writer at a time: a worker waits for another's end, and says so."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from django.db import OperationalError, connection

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.transient_errors import is_busy
from tests.conftest import StartWorker
from tests.sample import tasks
from tests.worker.test_newer_tasks import run
from tests.worker_process import wait_until

pytestmark = pytest.mark.sqlite_only


@contextmanager
def write_lock() -> Iterator[None]:
    """Hold it as a long import would."""
    path = connection.settings_dict["NAME"]
    with closing(sqlite3.connect(path, isolation_level=None, timeout=20)) as session:
        session.execute("BEGIN IMMEDIATE")
        yield
        session.execute("ROLLBACK")


@pytest.mark.slow
def test_a_worker_waits_for_the_write_lock_and_says_that_the_database_is_busy(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker("--concurrency", "1")
    started, go = tmp_path / "started", tmp_path / "go"
    result = tasks.append_and_wait.enqueue(str(started), str(go))
    wait_until(started.exists, what="a body")
    with write_lock():
        go.touch()
        wait_until(lambda: "Database busy" in worker.log())
    assert result.wait(60).status == "succeeded"
    wait_until(lambda: "Database back" in worker.log())
    assert "Database away" not in worker.log()
    worker.terminate()
    assert worker.wait() == 0


@pytest.mark.django_db(transaction=True)
def test_only_a_lock_is_busy() -> None:
    other = connection.copy()
    other.settings_dict["OPTIONS"] = {"timeout": 0}
    with closing(other), write_lock(), pytest.raises(OperationalError) as locked:
        other.cursor().execute("BEGIN IMMEDIATE")
    assert is_busy(locked.value)
    with pytest.raises(OperationalError) as mistaken:
        connection.cursor().execute("SELECT nothing")
    assert not is_busy(mistaken.value)
    assert not is_busy(OperationalError("locked"))


@pytest.mark.django_db(transaction=True)
def test_an_atomic_body_that_does_not_get_the_write_lock_is_handed_back_without_a_trace() -> None:
    with write_lock():
        connection.cursor().execute("PRAGMA busy_timeout = 0")
        outcome = run(tasks.mark_atomically.name, {})
    connection.close()
    assert (outcome.kind, outcome.started) == (OutcomeKind.UNSTARTED, None)
