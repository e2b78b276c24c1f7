"""Running one statement on a connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from django.db.backends.base.base import BaseDatabaseWrapper


def fetch(
    connection: BaseDatabaseWrapper, statement: str, parameters: Sequence[Any] = ()
) -> list[tuple[Any, ...]]:
    """Run a statement; its rows."""
    with connection.cursor() as cursor:
        # The stubs know neither timedeltas nor lists, which psycopg adapts.
        cursor.execute(statement, cast(Any, parameters))
        return cast("list[tuple[Any, ...]]", cursor.fetchall())


def change(connection: BaseDatabaseWrapper, statement: str, parameters: Sequence[Any] = ()) -> int:
    """Run a statement; how many rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, cast(Any, parameters))
        return int(cursor.rowcount)
