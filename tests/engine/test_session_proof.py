"""Which sessions are taken for a worker's own, and that the proof leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine import notify
from taskqueue.engine.connections import open_worker_connection
from taskqueue.engine.notify import NoWitness, has_own_session
from tests.chaos.proxy import ProxyProcess
from tests.conftest import require_tool
from tests.engine.repeating_pooler import RepeatingPooler
from tests.monitoring.test_health import elsewhere
from tests.pooler import MODES, PROGRAM, Mode, Pooler

SILENCE = 60.0
pytestmark = [pytest.mark.postgresql_only, pytest.mark.django_db(transaction=True)]


def is_own(port: int) -> bool:
    with elsewhere(port):
        session = open_worker_connection(silence=SILENCE)
        try:
            return has_own_session(session, silence=SILENCE)
        finally:
            session.close()


def server_port() -> int:
    return int(connection.settings_dict["PORT"] or 5432)


def test_a_direct_connection_has_its_own_session() -> None:
    assert is_own(server_port())


def test_so_has_one_through_a_relay_that_knows_nothing_of_postgresql() -> None:
    """A load balancer, a tunnel, the translation of addresses."""
    relay = ProxyProcess(connection.settings_dict["HOST"], server_port())
    try:
        assert is_own(relay.port)
    finally:
        relay.close()


@pytest.mark.parametrize("mode", MODES)
def test_pgbouncer_is_never_taken_for_the_server(mode: Mode) -> None:
    """Also where the same server process serves every transaction, one after the other."""
    require_tool(PROGRAM)
    with Pooler(connection.settings_dict, mode, size=1) as pooler:
        assert not is_own(pooler.port)


@pytest.mark.parametrize(
    ("sessions", "prefers_greeter"),
    [(1, False), (3, False), (3, True)],
    ids=["one for all", "the last", "each its own"],
)
def test_a_pooler_that_repeats_what_the_server_said_is_not_taken_for_it(
    sessions: int, prefers_greeter: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the process of the server that then serves its client."""
    monkeypatch.setattr(notify, "LONGEST_DELIVERY", 1.0)
    with RepeatingPooler(
        server_port(), sessions=sessions, prefers_greeter=prefers_greeter
    ) as pooler:
        assert not is_own(pooler.port)
        assert pooler.left_behind() == []


@pytest.fixture
def session() -> Iterator[BaseDatabaseWrapper]:
    session = open_worker_connection(silence=SILENCE)
    yield session
    session.close()


def test_without_a_second_connection_nothing_is_proven(session: BaseDatabaseWrapper) -> None:
    relay = ProxyProcess(connection.settings_dict["HOST"], server_port())
    try:
        relay.tell("refuse")
        with elsewhere(relay.port), pytest.raises(NoWitness):
            has_own_session(session, silence=SILENCE)
    finally:
        relay.close()
    assert has_own_session(session, silence=SILENCE)
