"""The moment."""

from __future__ import annotations

from datetime import datetime

from taskqueue.engine.connections import project_connection
from taskqueue.engine.wording import wording_for


def now() -> datetime:
    """By the database's clock."""
    connection = project_connection()
    return wording_for(connection).now(connection)
