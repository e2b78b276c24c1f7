"""The database's clock, and arrays as text for PostgreSQL: those that every batch sends."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.statement import fetch


def now(connection: BaseDatabaseWrapper) -> datetime:
    """The moment by the database's clock."""
    return cast(datetime, fetch(connection, "SELECT clock_timestamp()")[0][0])


def numbers(values: Sequence[float | None]) -> str:
    """An array of numbers as PostgreSQL reads it; psycopg's own dumper costs five times that."""
    if None in values:
        return "{" + ",".join(["NULL" if value is None else repr(value) for value in values]) + "}"
    return "{" + ",".join(map(repr, values)) + "}"


def microseconds(values: Sequence[float | None]) -> str:
    """An array of durations in seconds as whole microseconds, which cost half to write and read."""
    return numbers([None if value is None else int(value * 1e6) for value in values])


def words(values: Sequence[str | None]) -> str:
    """An array of ids and other words of letters, digits and `-`, as `numbers` makes its own."""
    return "{" + ",".join(["NULL" if value is None else value for value in values]) + "}"


def texts(values: Sequence[str | None]) -> str:
    """An array of any texts."""
    return words([None if value is None else _quoted(value) for value in values])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
