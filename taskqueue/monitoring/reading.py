"""Asking the queue's database: its clock, its vendor, a statement."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from taskqueue.engine import queries, sessions
from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.statement import Statement


def now() -> datetime:
    """Return the moment by the database's clock."""
    connection = project_connection()
    return dialect_for(connection).now(connection)


def is_postgresql() -> bool:
    """Whether the queue's database is PostgreSQL, not SQLite."""
    return sessions.is_postgresql(project_connection())


def read(statement: Statement, **parameters: Any) -> list[tuple[Any, ...]]:
    """Return the rows of the statement."""
    return queries.select(project_connection(), statement, **parameters)
