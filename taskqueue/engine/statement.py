"""Statements, worded for both databases, and running one on a connection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

from django.db.backends.base.base import BaseDatabaseWrapper

Parameters = Sequence[Any] | Mapping[str, Any]

SINCE = re.compile(r"\{since ([\w.]+)\}")


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

        They may contain `{now}`, `{since column}`, which is in seconds, and `{skip_locked}`.
        """
        postgresql = SINCE.sub(r"EXTRACT(epoch FROM clock_timestamp() - \1)", text)
        sqlite = SINCE.sub(r"((julianday(%(now)s) - julianday(\1)) * 86400.0)", text)
        return cls(
            postgresql=postgresql.replace("{now}", "clock_timestamp()").replace(
                "{skip_locked}", "FOR UPDATE SKIP LOCKED"
            ),
            sqlite=sqlite.replace("{now}", "%(now)s").replace("{skip_locked}", ""),
        )


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
