"""Running statements: long ones, and the arrays that they are given."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.postgresql.values import numbers, texts, words
from taskqueue.engine.statement import LONGEST_KEPT, change, fetch
from tests.engine.steps import another_connection

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

LONG = "-- " + LONGEST_KEPT * "-" + "\n"
ODD = ["", "a,b", '"', "\\", "{}", "NULL", " a ", "naïve\n", None]


@pytest.fixture
def session() -> Iterator[BaseDatabaseWrapper]:
    with another_connection() as connection:
        yield connection


def test_a_long_statement_gives_each_parameter_its_place(session: BaseDatabaseWrapper) -> None:
    statement = f"{LONG}SELECT %(b)s::int, %(a)s::interval, 7 %% %(b)s::int, 'a' LIKE '%%'"
    row = fetch(session, statement, {"a": timedelta(days=1), "b": 4})
    assert row == [(4, timedelta(days=1), 3, True)]


def test_a_long_statement_tells_how_many_rows_it_changed(session: BaseDatabaseWrapper) -> None:
    statement = f"{LONG}UPDATE taskqueue_queue SET name = %(name)s WHERE name = %(name)s"
    assert change(session, statement, {"name": "absent"}) == 0


def test_psycopg_does_not_parse_a_long_statement(
    session: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(*args: Any) -> None:
        raise AssertionError("It is parsed.")

    monkeypatch.setattr("psycopg._queries._query2pg_nocache", parse)
    assert fetch(session, f"{LONG}SELECT %(a)s::int", {"a": 1}) == [(1,)]


def test_a_long_statement_raises_the_same_error_as_django(session: BaseDatabaseWrapper) -> None:
    with pytest.raises(DataError):
        fetch(session, f"{LONG}SELECT %(a)s::int", {"a": "one"})


def test_a_log_of_queries_shows_a_long_statement(session: BaseDatabaseWrapper) -> None:
    session.force_debug_cursor = True
    fetch(session, f"{LONG}SELECT %(a)s::int", {"a": 1})
    assert session.queries[-1]["sql"].endswith("SELECT 1::int")


def test_a_long_statement_makes_a_connection(session: BaseDatabaseWrapper) -> None:
    session.close()
    assert fetch(session, f"{LONG}SELECT %(a)s::int", {"a": 1}) == [(1,)]


def test_a_long_statement_comes_through_where_the_session_has_ended(
    session: BaseDatabaseWrapper,
) -> None:
    session.health_check_enabled, session.health_check_done = True, False
    before = session.connection
    before.close()
    assert fetch(session, f"{LONG}SELECT %(a)s::int", {"a": 1}) == [(1,)]
    assert session.connection is not before


def test_arrays_hold_what_they_were_made_of(session: BaseDatabaseWrapper) -> None:
    arrays = (texts(ODD), words(["a-1", None]), numbers([1.5, None, float("inf")]), words([]))
    statement = "SELECT %s::text[], %s::text[], %s::float8[], %s::uuid[]"
    assert fetch(session, statement, arrays) == [
        (ODD, ["a-1", None], [1.5, None, float("inf")], [])
    ]
    assert fetch(session, "SELECT %s::bool[]", (numbers([True, False]),)) == [([True, False],)]
