"""When a worker begins to listen, and what it makes of a session that may not write."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from django.db import InternalError, connection, connections

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.engine.statement import change
from taskqueue.models import Lease, Worker
from taskqueue.worker import own_connection
from taskqueue.worker.exchange import Exchange
from tests.engine.steps import claim
from tests.sample.tasks import noop
from tests.worker.played_session import new_session

ROLE = "taskqueue_one_connection"
pytestmark = [pytest.mark.postgresql_only, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def role(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Whom the server grants one connection; new connections are made in this name."""
    change(connection, f"CREATE ROLE {ROLE} LOGIN CONNECTION LIMIT 1")
    for kind in ("TABLES", "SEQUENCES"):
        change(connection, f"GRANT ALL ON ALL {kind} IN SCHEMA public TO {ROLE}")
    monkeypatch.setitem(connections.settings["default"], "USER", ROLE)
    yield ROLE
    change(connection, f"DROP OWNED BY {ROLE}")
    change(connection, f"DROP ROLE {ROLE}")


def test_a_worker_listens_as_soon_as_the_server_grants_it_a_second_connection(
    role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_connection, "PROOF_INTERVAL", 0.0)
    session = new_session(lambda payload: None)
    try:
        session.open()
        assert session.listener is None
        assert Worker.objects.get().listens is None
        change(connection, f"ALTER ROLE {role} CONNECTION LIMIT 2")
        session.open()
        assert session.listener is not None
        assert Worker.objects.get().listens is True
    finally:
        session.end()


def test_a_session_that_may_not_write_is_no_refusal_of_outcomes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nor is one that was ended, whose error belongs to the same class of internal ones."""
    noop.enqueue()
    [claimed] = claim(1)
    session = new_session(lambda payload: None)
    session.open()
    change(session.connection, "SET default_transaction_read_only = on")
    outcome = Outcome(claimed.lease_id, OutcomeKind.SUCCEEDED, time.monotonic())
    with pytest.raises(InternalError, match="read-only"):
        session.carry_out(Exchange(outcomes=[outcome], want=1))
    session.close()
    assert "refused" not in caplog.text
    assert Lease.objects.get().status == "running"
