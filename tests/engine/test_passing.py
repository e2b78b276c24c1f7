"""Which errors of PostgreSQL tell that it was away for everybody."""

from __future__ import annotations

import pytest
from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.transient_errors import is_outage
from tests.engine.steps import another_connection

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]


def error_of(connection: BaseDatabaseWrapper, statement: str, *parameters: object) -> Exception:
    with pytest.raises(DatabaseError) as caught, connection.cursor() as cursor:
        cursor.execute(statement, parameters)
    return caught.value


def test_a_terminated_session_is_an_outage_also_once_it_is_gone() -> None:
    with another_connection() as connection:
        terminated = error_of(connection, "SELECT pg_terminate_backend(pg_backend_pid())")
        assert is_outage(terminated)
        assert is_outage(error_of(connection, "SELECT 1"))


def test_a_read_only_database_is_an_outage() -> None:
    with another_connection() as connection:
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")
        assert is_outage(error_of(connection, "DELETE FROM taskqueue_queue"))


@pytest.mark.parametrize("value", ["a\0b", "x"])
def test_a_refused_value_is_no_outage(value: str) -> None:
    with another_connection() as connection:
        assert not is_outage(error_of(connection, "SELECT %s::int", value))
