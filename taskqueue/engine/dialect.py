"""Statements whose SQL differs between databases, and how to run those for both.

Both dialects have the same functions. Each runs one guarded statement, or a few in the caller's
transaction; mypy checks every call against both. PostgreSQL's functions have the docstrings.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from taskqueue.engine.postgresql import PostgreSQL
from taskqueue.engine.sessions import is_postgresql, is_sqlite
from taskqueue.engine.sqlite import SQLite
from taskqueue.engine.sqlite.values import clock, microseconds, stored
from taskqueue.engine.statement import Statement, change, fetch, text_of

Row = TypeVar("Row", bound=Model)


def dialect_for(connection: BaseDatabaseWrapper) -> type[PostgreSQL] | type[SQLite]:
    """Return the dialect of a connection's database. Raises ValueError for an unsupported one."""
    if is_postgresql(connection):
        return PostgreSQL
    if is_sqlite(connection):
        return SQLite
    raise ValueError(
        f"taskqueue does not run on {connection.display_name}. "
        "Point TASKQUEUE['DATABASE'] at a PostgreSQL or SQLite database."
    )


def select(
    connection: BaseDatabaseWrapper, statement: Statement, **parameters: Any
) -> list[tuple[Any, ...]]:
    """Run a statement. Return its rows."""
    return fetch(connection, text_of(connection, statement), _adapted(connection, parameters))


def select_rows(
    connection: BaseDatabaseWrapper, model: type[Row], statement: Statement, **parameters: Any
) -> list[Row]:
    """Run a statement that returns at least all columns of a model. Return its rows."""
    rows = model._default_manager.using(connection.alias)
    return list(rows.raw(text_of(connection, statement), _adapted(connection, parameters)))


def execute(connection: BaseDatabaseWrapper, statement: Statement, **parameters: Any) -> int:
    """Run a statement. Return how many rows it changed."""
    return change(connection, text_of(connection, statement), _adapted(connection, parameters))


def select_ids(
    connection: BaseDatabaseWrapper, statement: Statement, **parameters: Any
) -> list[str]:
    """Run a statement that returns ids of tasks. Return them as text."""
    return [str(as_uuid(row[0])) for row in select(connection, statement, **parameters)]


def array_of(value: Any) -> Any:
    """Return a list of integers or UUIDs as text for PostgreSQL; other values unchanged.

    The driver's own dumper takes several times as long.
    """
    if type(value) is not list or not value or type(value[0]) not in (int, UUID):
        return value
    return "{" + ",".join(["NULL" if each is None else str(each) for each in value]) + "}"


def as_uuid(value: UUID | str) -> UUID:
    """Return the UUID from either database's value."""
    return value if isinstance(value, UUID) else UUID(value)


def _adapted(connection: BaseDatabaseWrapper, parameters: dict[str, Any]) -> dict[str, Any]:
    if not is_sqlite(connection):
        return {name: array_of(value) for name, value in parameters.items()}
    stored_values = {name: _stored(value) for name, value in parameters.items()}
    return {"now": stored(clock()), **stored_values}


def _stored(value: Any) -> Any:
    """Return a parameter as SQLite stores it; a list as JSON text for `json_each`."""
    if isinstance(value, datetime):
        return stored(value)
    if isinstance(value, timedelta):
        return microseconds(value)
    if isinstance(value, list):
        return json.dumps(value)
    return value.hex if isinstance(value, UUID) else value
