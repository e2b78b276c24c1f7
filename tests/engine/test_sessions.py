"""What a worker leaves in a session that a pooler may hand to others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import open_worker_connection, own_session, transaction
from taskqueue.engine.notify import Listener

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]


@pytest.fixture
def session() -> Iterator[BaseDatabaseWrapper]:
    connection = open_worker_connection(silence=10)
    yield connection
    connection.close()


def seqscan(connection: BaseDatabaseWrapper) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW enable_seqscan")
        return str(cursor.fetchone()[0])


def test_a_session_that_may_be_shared_keeps_no_setting(session: BaseDatabaseWrapper) -> None:
    assert seqscan(session) == "on"
    with transaction(session):
        assert seqscan(session) == "off"
    assert seqscan(session) == "on"
    assert session.connection.prepare_threshold is None


def test_a_session_that_hears_itself_is_set_once(session: BaseDatabaseWrapper) -> None:
    assert Listener(session, lambda payload: None).start()
    own_session(session)
    assert seqscan(session) == "off"
    with transaction(session):
        assert seqscan(session) == "off"
    assert seqscan(session) == "off"
    assert session.connection.prepare_threshold is not None
