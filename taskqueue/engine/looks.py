"""Queries by which a worker sees what it has to do, all of them in one statement.

They are parts of a statement with the parameters `%(worker)s`, the worker's id, and on SQLite
`%(now)s`. Each gives one value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, kw_only=True, eq=False)
class Look:
    """One query, worded for both databases."""

    postgresql: str
    sqlite: str

    @classmethod
    def of(cls, query: str) -> Self:
        """Return a query with the same words for both."""
        return cls(postgresql=query, sqlite=query)


class Moment(Look):
    """When something is needed."""


class Fact(Look):
    """Whether something is needed, or how many there are of something."""
