"""Running one statement on a connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from django.db.backends.base.base import BaseDatabaseWrapper

Parameters = Sequence[Any] | Mapping[str, Any]


def fetch(
    connection: BaseDatabaseWrapper, statement: str, parameters: Parameters = ()
) -> list[tuple[Any, ...]]:
    """Run a statement; its rows."""
    with connection.cursor() as cursor:
        # The stubs know neither timedeltas nor lists, which psycopg adapts.
        cursor.execute(statement, cast(Any, parameters))
        return cast("list[tuple[Any, ...]]", cursor.fetchall())


def change(connection: BaseDatabaseWrapper, statement: str, parameters: Parameters = ()) -> int:
    """Run a statement; how many rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, cast(Any, parameters))
        return int(cursor.rowcount)
