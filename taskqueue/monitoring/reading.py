"""Running a statement that has a wording for each database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from taskqueue.engine.connections import project_connection
from taskqueue.engine.sqlite.values import clock, stored


def read(wordings: Mapping[str, str], **parameters: Any) -> list[tuple[Any, ...]]:
    """The rows of the statement in the wording of the queue's database."""
    connection = project_connection()
    wording = wordings[connection.vendor]
    # Where queries are logged, as under DEBUG, Django binds all that it is given: an interval,
    # which is for PostgreSQL alone, SQLite refuses.
    named = {name: value for name, value in parameters.items() if f"%({name})s" in wording}
    with connection.cursor() as cursor:
        cursor.execute(wording, named)
        return cast("list[tuple[Any, ...]]", cursor.fetchall())


def moment() -> str | None:
    """The moment by SQLite's clock, as its rows are written; PostgreSQL knows it without."""
    return stored(clock())
