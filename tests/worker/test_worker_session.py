"""When a worker begins to listen, and what it makes of a session that may not write."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from django.db import InternalError, connection, connections

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.engine.statement import change
from taskqueue.engine.tally import Tally
from taskqueue.models import Lease, Worker
from taskqueue.worker import own_connection, worker_session
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.meter import Meter
from taskqueue.worker.state import WorkerOptions, WorkerState
from tests.engine.steps import claim
from tests.engine.test_workers import registered
from tests.sample.tasks import noop

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


def new_session() -> worker_session.WorkerSession:
    _, found = registered("w1")
    state = WorkerState(WorkerOptions(name="w1"), get_settings(), Meter(), lambda: None)
    state.registered = found
    return worker_session.WorkerSession(state, heard=lambda payload: None, tally=Tally())


def test_a_worker_listens_as_soon_as_the_server_grants_it_a_second_connection(
    role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_connection, "PROOF_INTERVAL", 0.0)
    session = new_session()
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
    session = new_session()
    session.open()
    change(session.connection, "SET default_transaction_read_only = on")
    outcome = Outcome(claimed.lease_id, OutcomeKind.SUCCEEDED, time.monotonic())
    with pytest.raises(InternalError, match="read-only"):
        session.carry_out(Exchange(outcomes=[outcome], want=1))
    session.close()
    assert "refused" not in caplog.text
    assert Lease.objects.get().status == "running"
