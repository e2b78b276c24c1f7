"""The state that a worker leaves in a session that a pooler may hand to others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine import sessions
from taskqueue.engine.connections import open_worker_connection, transaction
from taskqueue.engine.notify import Listener
from taskqueue.engine.record import record_success
from taskqueue.engine.sessions import leave_session, own_session
from taskqueue.engine.statement import fetch
from tests.engine.steps import claim_one, outcome, policy
from tests.sample.tasks import noop
from tests.worker_process import wait_until

LOCK = "SELECT 1 FROM taskqueue_lease WHERE id = %s FOR UPDATE"
IDLENESS = "idle_in_transaction_session_timeout"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]


@pytest.fixture(autouse=True)
def _shortest_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a worker; other tests are patient with a busy machine."""
    monkeypatch.setattr(sessions, "SHORTEST_SILENCE", 1.0)


@pytest.fixture
def session() -> Iterator[BaseDatabaseWrapper]:
    connection = open_worker_connection(silence=10)
    yield connection
    connection.close()


def setting(connection: BaseDatabaseWrapper, name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        return str(cursor.fetchone()[0])


def everything(connection: BaseDatabaseWrapper) -> list[Any]:
    """Return the settings, channels and prepared statements of a session."""
    return [
        fetch(connection, "SELECT name, setting FROM pg_settings WHERE source = 'session'"),
        fetch(connection, "SELECT pg_listening_channels()"),
        fetch(connection, "SELECT statement FROM pg_prepared_statements"),
    ]


def seqscan(connection: BaseDatabaseWrapper) -> str:
    return setting(connection, "enable_seqscan")


def test_a_session_that_may_be_shared_keeps_no_setting(session: BaseDatabaseWrapper) -> None:
    assert seqscan(session) == "on"
    with transaction(session):
        assert seqscan(session) == "off"
    assert seqscan(session) == "on"
    assert session.connection.prepare_threshold is None


def test_a_session_of_ones_own_is_set_once_and_left_as_it_was(
    session: BaseDatabaseWrapper,
) -> None:
    before = everything(session)
    own_session(session)
    assert seqscan(session) == "off"
    with transaction(session):
        assert seqscan(session) == "off"
    assert seqscan(session) == "off"
    assert session.connection.prepare_threshold is not None
    Listener(session, lambda payload: None).start()
    for _ in range(3):
        assert everything(session) != before
    leave_session(session)
    assert everything(session) == before
    with transaction(session):
        pass
    assert everything(session) == before


@pytest.mark.parametrize("is_own", [True, False])
def test_the_locks_of_a_worker_that_falls_silent_in_a_transaction_are_free_before_its_leases_end(
    session: BaseDatabaseWrapper, settings: Any, is_own: bool
) -> None:
    settings.TASKQUEUE = {"LEASE_DURATION": 6, "PING_INTERVAL": 1}
    noop.enqueue()
    held = claim_one().lease_id
    if is_own:
        own_session(session)
    looks_in_vain: list[float] = []

    def is_free() -> bool:
        began_to_look = time.monotonic()
        with suppress(OperationalError), atomic(), connection.cursor() as cursor:
            cursor.execute(f"{LOCK} NOWAIT", (held,))
            return True
        looks_in_vain.append(began_to_look)
        return False

    with pytest.raises(DatabaseError), transaction(session):  # noqa: PT012
        with session.cursor() as cursor:
            cursor.execute(LOCK, (held,))
        began = time.monotonic()
        # Who comes too late for its first look finds what the others are to find.
        assert not is_free() or time.monotonic() - began > 1
        wait_until(is_free, what="the lock")
        # However late the look is that finds it free.
        assert all(at - began < 6 for at in looks_in_vain)
        with session.cursor() as cursor:
            cursor.execute("SELECT 1")


def test_an_atomic_body_may_be_idle_until_its_success_is_recorded() -> None:
    noop.enqueue()
    success = outcome(claim_one(), OutcomeKind.SUCCEEDED)
    with atomic():
        assert setting(connection, IDLENESS) == "0"
        assert record_success(connection, success, policy=policy())
        assert setting(connection, IDLENESS) == "10s"
    assert setting(connection, IDLENESS) == "0"
