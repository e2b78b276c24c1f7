"""Kinds of arguments: accepted values, their JSON form, and the body's value."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from decimal import InvalidOperation
from enum import Enum
from typing import Any, NoReturn

from taskqueue.core.refusals import refusal as _

NOTHING: frozenset[type] = frozenset()


class Deferred:
    """The base of placeholders for later values, which every kind accepts."""


class Misfit(Exception):
    """A value that a kind does not admit; `path` is its place within the argument.

    `reason` is what the project's own code said of it, which may show the value.
    """

    def __init__(self, wanted: str, value: object, reason: str = "") -> None:
        super().__init__(wanted)
        self.wanted, self.value, self.reason = wanted, value, reason
        self.path: list[object] = []


class Kind(ABC):
    """The kind of values that an annotation accepts."""

    # The words for it in messages.
    words: str
    # Whether the body receives another value than the stored JSON.
    converts = False
    # The types whose values are stored as they are, without a further look.
    exact: frozenset[type] = NOTHING

    def store(self, value: Any) -> Any:
        """Return the stored form of a value. Raises `Misfit`."""
        return value if isinstance(value, Deferred) else self._store(value)

    def admits(self, value: Any) -> bool:
        """Return whether it can be stored."""
        try:
            self.store(value)
        except Misfit:
            return False
        return True

    def load(self, value: Any) -> Any:
        """Return the body's value for a stored one, or for one that needs no change.

        Raises `Misfit`.
        """
        return value if isinstance(value, Deferred) else self._load(value)

    @abstractmethod
    def _store(self, value: Any) -> Any: ...

    @abstractmethod
    def _load(self, value: Any) -> Any: ...

    def refuse(self, value: object) -> NoReturn:
        """Raise the `Misfit` of a value."""
        raise Misfit(self.words, value)


class Plain(Kind):
    """Values of JSON: text, numbers, true and false, null."""

    def __init__(self, words: str, *admitted: type, exact: Iterable[type] = ()) -> None:
        self.words, self._admitted = words, admitted
        self.exact = frozenset(exact or admitted)

    def _store(self, value: Any) -> Any:
        return value if isinstance(value, self._admitted) else self.refuse(value)

    _load = _store


class OneOf(Kind):
    """The values of a `Literal`."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values
        self.words = _("one of {names}", names=", ".join(map(repr, values)))

    def _store(self, value: Any) -> Any:
        is_one = any(type(value) is type(each) and value == each for each in self._values)
        return value if is_one else self.refuse(value)

    _load = _store


class Text(Kind):
    """Values of a type that is stored as text."""

    converts = True

    def __init__(
        self, made: type, parse: Callable[[str], Any], dump: Callable[[Any], str] = str
    ) -> None:
        self._made, self._parse, self._dump = made, parse, dump
        self.words = made.__name__

    def _store(self, value: Any) -> Any:
        return self._dump(self._load(value))

    def _load(self, value: Any) -> Any:
        # A datetime is a date for Python, and would come back without its time.
        if isinstance(value, self._made) and (
            self._made is not date or not isinstance(value, datetime)
        ):
            return value
        if isinstance(value, str):
            try:
                parsed = self._parse(value)
            except (ValueError, InvalidOperation):
                parsed = None
            if parsed is not None:
                return parsed
        self.refuse(value)


class Member(Kind):
    """The members of an Enum."""

    converts = True

    def __init__(self, made: type[Enum]) -> None:
        self._made = made
        members = list(made)
        is_plain = all(
            member.value is None or isinstance(member.value, bool | int | str) for member in members
        )
        # The stored value of each member.
        self.stored = {each: each.value if is_plain else each.name for each in members}
        self._members = {json.dumps(stored): each for each, stored in self.stored.items()}
        self.words = _(
            "{type}, one of {names}",
            type=made.__name__, names=", ".join(map(str, self.stored.values())),
        )  # fmt: skip

    def _store(self, value: Any) -> Any:
        return self.stored[self._load(value)]

    def _load(self, value: Any) -> Any:
        if isinstance(value, self._made):
            return value
        is_plain = value is None or isinstance(value, bool | int | str)
        if is_plain and (member := self._members.get(json.dumps(value))) is not None:
            return member
        self.refuse(value)


def at(place: object, change: Callable[[Any], Any], value: Any) -> Any:
    """Return the converted value; adds the place to a `Misfit`."""
    try:
        return change(value)
    except Misfit as error:
        error.path.insert(0, place)
        raise
