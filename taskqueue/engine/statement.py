"""Statements, worded for both databases, and running one on a connection."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self, cast

from django.db.backends.base.base import BaseDatabaseWrapper

Parameters = Sequence[Any] | Mapping[str, Any]

# Up to so many characters psycopg remembers where the parameters of a statement stand. In a longer
# one it looks for them each time.
LONGEST_KEPT = 4096
PARAMETER = re.compile(r"%\((?P<name>\w+)\)s")

SINCE = re.compile(r"\{since ([\w.]+)\}")
# What `Statement.of` puts in place of each word, on PostgreSQL and on SQLite.
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

    It is run by `dialect.select` and `dialect.execute`. On SQLite `%(now)s` is this moment.
    """

    postgresql: str
    sqlite: str

    @classmethod
    def of(cls, text: str) -> Self:
        """Return a statement in the same words for both databases.

        They may contain `{now}`, `{since column}`, which is in seconds, `{in ids uuid}` and
        `{not in ids uuid}` for a parameter with a list of that type, `{json value}` for one with
        JSON text, `{for_update}` and `{skip_locked}`.
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
    """Return the statement as the connection's database wants it."""
    return statement.sqlite if connection.vendor == "sqlite" else statement.postgresql


def fetch(
    connection: BaseDatabaseWrapper, statement: str, parameters: Parameters = ()
) -> list[tuple[Any, ...]]:
    """Run a statement; its rows."""
    with _executed(connection, statement, parameters) as cursor:
        return cast("list[tuple[Any, ...]]", cursor.fetchall())


def change(connection: BaseDatabaseWrapper, statement: str, parameters: Parameters = ()) -> int:
    """Run a statement; how many rows it changed."""
    with _executed(connection, statement, parameters) as cursor:
        return int(cursor.rowcount)


@contextmanager
def _executed(
    connection: BaseDatabaseWrapper, statement: str, parameters: Parameters
) -> Iterator[Any]:
    """A cursor that has run a statement."""
    is_long = len(statement) > LONGEST_KEPT and _sends_parameters_apart(connection)
    if is_long and isinstance(parameters, Mapping):
        text, names = numbered(statement)
        cursor, given = _raw_cursor(connection), [parameters[name] for name in names]
    else:
        # The stubs know neither timedeltas nor lists, which psycopg adapts.
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
    """Return whether the server binds parameters, and no log is to put them into the text."""
    options = connection.settings_dict.get("OPTIONS") or {}
    return options.get("server_side_binding") is True and not connection.queries_logged


def _raw_cursor(connection: Any) -> Any:
    """Django's cursor around one of psycopg that takes statements as they are."""
    from psycopg import RawCursor  # SQLite does without it.

    # As Django does before it makes a cursor: that one must be of this session.
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    session = connection.connection
    usual, session.cursor_factory = session.cursor_factory, RawCursor
    try:
        return connection.cursor()
    finally:
        session.cursor_factory = usual
