"""Asking the queue's database: its clock, its dialect, a statement worded for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar, cast

from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.sqlite.values import clock, stored

T = TypeVar("T")


def now() -> datetime:
    """Return the moment by the database's clock."""
    connection = project_connection()
    return dialect_for(connection).now(connection)


def is_postgresql() -> bool:
    """Whether the queue's database is PostgreSQL, not SQLite."""
    return project_connection().vendor == "postgresql"


def worded(wordings: Mapping[str, T]) -> T:
    """Return the wording for the queue's database, from the wordings by vendor."""
    return wordings[project_connection().vendor]


def read(wordings: Mapping[str, str], **parameters: Any) -> list[tuple[Any, ...]]:
    """Return the rows of the statement in the wording of the queue's database."""
    statement = worded(wordings)
    # Where queries are logged, as under DEBUG, Django binds every parameter: SQLite refuses an
    # interval, which only PostgreSQL's wording uses.
    named = {name: value for name, value in parameters.items() if f"%({name})s" in statement}
    with project_connection().cursor() as cursor:
        cursor.execute(statement, named)
        return cast("list[tuple[Any, ...]]", cursor.fetchall())


def moment() -> str | None:
    """Return the moment by SQLite's clock, as its rows are written; PostgreSQL knows its own."""
    return stored(clock())
