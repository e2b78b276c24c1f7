"""Statements with a form for each database, and running a statement on a connection."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self, cast

from django.db.backends.base.base import BaseDatabaseWrapper

Parameters = Sequence[Any] | Mapping[str, Any]

# Up to this many characters, psycopg remembers the positions of a statement's parameters; in longer
# ones it searches for them each time.
LONGEST_KEPT = 4096
PARAMETER = re.compile(r"%\((?P<name>\w+)\)s")

SINCE = re.compile(r"\{since ([\w.]+)\}")
# What `Statement.of` inserts for each word, on PostgreSQL and on SQLite.
WORDS = (
    (SINCE, r"EXTRACT(epoch FROM clock_timestamp() - \1)",
     r"((julianday(%(now)s) - julianday(\1)) * 86400.0)"),
    (re.compile(r"\{in (\w+) (\w+)\}"), r"= ANY (%(\1)s::\2[])",
     r"IN (SELECT value FROM json_each(%(\1)s))"),
    (re.compile(r"\{not in (\w+) (\w+)\}"), r"<> ALL (%(\1)s::\2[])",
     r"NOT IN (SELECT value FROM json_each(%(\1)s))"),
    (re.compile(r"\{json (\w+)\}"), r"%(\1)s::jsonb", r"%(\1)s"),
    (re.compile(r"\{now\}"), "clock_timestamp()", "%(now)s"),
    (re.compile(r"\{skip_locked\}"), "FOR UPDATE SKIP LOCKED", ""),
    (re.compile(r"\{for_update\}"), "FOR UPDATE", ""),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Statement:
    """A statement, or a part of one, with named parameters.

    Run it with `dialect.select` or `dialect.execute`. On SQLite `%(now)s` is the current time.
    """

    postgresql: str
    sqlite: str

    @classmethod
    def of(cls, text: str) -> Self:
        """Return a statement with the same text for both databases.

        The text may contain `{now}`, `{since column}` (in seconds), `{in ids uuid}` and `{not in
        ids uuid}` for a parameter with a list of that type, `{json value}` for one with JSON text,
        `{for_update}` and `{skip_locked}`.
        """
        postgresql = sqlite = text
        for word, on_postgresql, on_sqlite in WORDS:
            postgresql, sqlite = word.sub(on_postgresql, postgresql), word.sub(on_sqlite, sqlite)
        return cls(postgresql=postgresql, sqlite=sqlite)


class Moment(Statement):
    """A query for when something is needed."""


class Fact(Statement):
    """A query for whether something is needed, or how many there are of something."""


def text_of(connection: BaseDatabaseWrapper, statement: Statement) -> str:
    """Return the statement's text for the connection's database."""
    return statement.sqlite if connection.vendor == "sqlite" else statement.postgresql


def fetch(
    connection: BaseDatabaseWrapper, statement: str, parameters: Parameters = ()
) -> list[tuple[Any, ...]]:
    """Run a statement. Return its rows."""
    with _executed(connection, statement, parameters) as cursor:
        return cast("list[tuple[Any, ...]]", cursor.fetchall())


def change(connection: BaseDatabaseWrapper, statement: str, parameters: Parameters = ()) -> int:
    """Run a statement. Return how many rows it changed."""
    with _executed(connection, statement, parameters) as cursor:
        return int(cursor.rowcount)


@contextmanager
def _executed(
    connection: BaseDatabaseWrapper, statement: str, parameters: Parameters
) -> Iterator[Any]:
    """Yield a cursor that has run a statement."""
    is_long = len(statement) > LONGEST_KEPT and _sends_parameters_apart(connection)
    if is_long and isinstance(parameters, Mapping):
        text, names = numbered(statement)
        cursor, given = _raw_cursor(connection), [parameters[name] for name in names]
    else:
        # The type stubs know neither timedeltas nor lists, which psycopg adapts.
        cursor, text, given = connection.cursor(), statement, cast(Any, parameters)
    with cursor:
        cursor.execute(text, given)
        yield cursor


@lru_cache(maxsize=256)
def numbered(statement: str) -> tuple[str, list[str]]:
    """Return a statement with `$1` for each `%(name)s`, and the names in the order of numbers."""
    names = list(dict.fromkeys(found["name"] for found in PARAMETER.finditer(statement)))
    text = PARAMETER.sub(lambda found: f"${names.index(found['name']) + 1}", statement)
    return text.replace("%%", "%"), names


def _sends_parameters_apart(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the server binds parameters, and no log needs them in the statement's text."""
    options = connection.settings_dict.get("OPTIONS") or {}
    return options.get("server_side_binding") is True and not connection.queries_logged


def _raw_cursor(connection: Any) -> Any:
    """Return Django's cursor around a psycopg cursor that does not rewrite statements."""
    from psycopg import RawCursor  # Imported here, because SQLite works without psycopg.

    # Django does the same before it makes a cursor, which must belong to this session.
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    session = connection.connection
    usual, session.cursor_factory = session.cursor_factory, RawCursor
    try:
        return connection.cursor()
    finally:
        session.cursor_factory = usual
