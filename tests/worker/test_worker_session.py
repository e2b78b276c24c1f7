"""When a worker begins to listen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection, connections

from taskqueue.conf import get_settings
from taskqueue.engine.statement import change
from taskqueue.engine.tally import Tally
from taskqueue.models import Worker
from taskqueue.worker import worker_session
from taskqueue.worker.meter import Meter
from taskqueue.worker.state import WorkerOptions, WorkerState
from tests.engine.test_workers import registered

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
    monkeypatch.setattr(worker_session, "PROOF_INTERVAL", 0.0)
    _, found = registered("w1")
    state = WorkerState(WorkerOptions(name="w1"), get_settings(), Meter(), lambda: None)
    state.registered = found
    session = worker_session.WorkerSession(state, heard=lambda payload: None, tally=Tally())
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
