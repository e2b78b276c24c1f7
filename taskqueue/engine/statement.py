"""Statements, worded for both databases, and running one on a connection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

from django.db.backends.base.base import BaseDatabaseWrapper

Parameters = Sequence[Any] | Mapping[str, Any]

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
    with connection.cursor() as cursor:
        # The stubs know neither timedeltas nor lists, which psycopg adapts.
        cursor.execute(statement, cast(Any, parameters))
        return cast("list[tuple[Any, ...]]", cursor.fetchall())


def change(connection: BaseDatabaseWrapper, statement: str, parameters: Parameters = ()) -> int:
    """Run a statement; how many rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, cast(Any, parameters))
        return int(cursor.rowcount)
