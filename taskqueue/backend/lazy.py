"""Frozen records whose missing fields are read from the database on first use.

A worker's child knows the id and the function of a task, which is all that Django's logging needs.
It opens no connection for fields that nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class Lazy:
    """Base of a subclass, with a `__dict__`, of a dataclass with slots."""

    def __getattr__(self, name: str) -> Any:
        # Python comes here for a slot that was never filled.
        state = self.__dict__
        if name not in state.get("_missing", ()):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        fill(self, state["_read"]())
        return getattr(self, name)


def make(kind: type[T], values: Mapping[str, Any]) -> T:
    """Return a record of these values, which are not validated again."""
    record = kind.__new__(kind)
    for name, value in values.items():
        object.__setattr__(record, name, value)
    return record


def make_lazy(
    kind: type[T],
    values: Mapping[str, Any],
    missing: frozenset[str],
    read: Callable[[], Mapping[str, Any]],
) -> T:
    """Return a record of these values, which calls `read` for the missing ones, once."""
    return make(kind, {**values, "_missing": missing - values.keys(), "_read": read})


def fill(record: Any, values: Mapping[str, Any]) -> None:
    """Fill in the missing values of a lazy record."""
    for name in record.__dict__.get("_missing", ()):
        object.__setattr__(record, name, values[name])
    object.__setattr__(record, "_missing", frozenset())
