"""Whether a web process is ready, and how long it may take to tell."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, connections
from django.db.migrations.recorder import MigrationRecorder

from taskqueue.engine.connections import project_connection
from taskqueue.monitoring import health
from taskqueue.monitoring.health import Check
from taskqueue.monitoring.reading import NoAnswer, Question

DATABASE_ANSWERS = Check(name="database", is_ok=True)


@contextmanager
def elsewhere(port: int) -> Iterator[None]:
    """The database's address, as new connections learn it, leads to that port."""
    settings = connections.settings["default"]
    own = settings["HOST"], settings["PORT"]
    settings["HOST"], settings["PORT"] = "127.0.0.1", str(port)
    try:
        yield
    finally:
        settings["HOST"], settings["PORT"] = own


def test_it_is_live_without_a_look_at_anything() -> None:
    assert health.live() == health.Health()
    assert (health.live().is_ok, health.live().status) == (True, "ok")


@pytest.mark.django_db(transaction=True)
def test_it_is_ready_once_the_migrations_are_applied() -> None:
    assert health.ready().checks == (DATABASE_ANSWERS, Check(name="migrations", is_ok=True))
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("taskqueue", "0001_initial")
    try:
        found = health.ready()
    finally:
        recorder.record_applied("taskqueue", "0001_initial")
    detail = "Not applied: 0001_initial. Run manage.py migrate."
    assert found.checks == (DATABASE_ANSWERS, Check(name="migrations", is_ok=False, detail=detail))
    assert (found.is_ok, found.status) == (False, "unavailable")
    assert health.ready().is_ok


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_database_that_refuses_or_never_answers_is_reported_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("taskqueue.engine.connections.CONNECT_TIMEOUT", 60)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with elsewhere(port):
            found = health.ready(seconds=0.2)
            # Who asks again, while nobody knows better, makes no second connection.
            asked = health.shared_look.latest
            assert health.ready(seconds=0.2) == found
            assert health.shared_look.latest is asked
    [check] = found.checks
    assert (check.name, check.is_ok) == ("database", False)
    assert check.detail == "The database has not answered within 0.2 s."
    assert asked is not None
    asked._thread.join(60)
    with elsewhere(port):
        [check] = health.ready().checks
    assert "Connection refused" in check.detail
    assert health.ready().is_ok


@pytest.mark.django_db(transaction=True)
def test_a_question_is_asked_on_a_separate_connection() -> None:
    connection.ensure_connection()
    ours, go = connection.connection, threading.Event()

    def step() -> bool:
        own = project_connection()
        with own.cursor() as cursor:
            cursor.execute("SELECT 1")
            return own.connection is not ours and go.wait(60)

    question = Question(step, seconds=0.05)
    with pytest.raises(NoAnswer, match=r"has not answered within 0\.05 s"):
        question.answer()
    assert question.is_open
    go.set()
    question._thread.join(60)
    assert question.answer() is True
    assert not question.is_open


@pytest.mark.django_db(transaction=True)
def test_the_error_of_a_check_is_raised_to_its_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        Question(lambda: 1 / 0, seconds=60).answer()
