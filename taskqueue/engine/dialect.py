"""The statements that are worded differently for each database.

Both dialects have the same methods, each of them one guarded statement, or a few in the caller's
transaction; mypy checks every call against both. PostgreSQL's functions tell what they do.
"""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.postgresql import PostgreSQL
from taskqueue.engine.sessions import is_postgresql, is_sqlite
from taskqueue.engine.sqlite import SQLite


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
