"""The moment."""

from __future__ import annotations

from datetime import datetime

from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for


def now() -> datetime:
    """By the database's clock."""
    connection = project_connection()
    return dialect_for(connection).now(connection)
