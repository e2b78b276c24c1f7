"""Kinds of arguments: what is admitted, how JSON stores it, and what the body is given."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import InvalidOperation
from enum import Enum
from functools import cached_property
from typing import Any, NoReturn

from django.core.exceptions import ValidationError
from django.db.models import Model

NOTHING: frozenset[type] = frozenset()


class Deferred:
    """The base of what stands for a value that is known later: any kind lets it pass."""


class Misfit(Exception):
    """A value that a kind does not admit; `path` is where it stands within the argument."""

    def __init__(self, wanted: str, value: object) -> None:
        super().__init__(wanted)
        self.wanted, self.given = wanted, type(value)
        self.path: list[object] = []


class Kind(ABC):
    """What an annotation admits."""

    # The words for it in messages.
    words: str
    # Whether the body is given anything else than what JSON gives back.
    converts = False
    # The types whose values are stored as they are, without a further look.
    exact: frozenset[type] = NOTHING

    def store(self, value: Any) -> Any:
        """Return what is stored for a value. Raises `Misfit`."""
        return value if isinstance(value, Deferred) else self._store(value)

    def admits(self, value: Any) -> bool:
        """Return whether it can be stored."""
        try:
            self.store(value)
        except Misfit:
            return False
        return True

    def load(self, value: Any) -> Any:
        """Return what the body is given for a stored value, or for one that needs no change.

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
    """What JSON has: text, numbers, true and false, null."""

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
        self.words = f"one of {', '.join(map(repr, values))}"

    def _store(self, value: Any) -> Any:
        is_one = any(type(value) is type(each) and value == each for each in self._values)
        return value if is_one else self.refuse(value)

    _load = _store


class Text(Kind):
    """Values of a type that stand as text."""

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
        # What stands for each member.
        self.stored = {each: each.value if is_plain else each.name for each in members}
        self._members = {json.dumps(stored): each for each, stored in self.stored.items()}
        self.words = f"{made.__name__}, one of {', '.join(map(str, self.stored.values()))}"

    def _store(self, value: Any) -> Any:
        return self.stored[self._load(value)]

    def _load(self, value: Any) -> Any:
        if isinstance(value, self._made):
            return value
        is_plain = value is None or isinstance(value, bool | int | str)
        if is_plain and (member := self._members.get(json.dumps(value))) is not None:
            return member
        self.refuse(value)


class Fields(Kind):
    """A dataclass."""

    converts = True

    def __init__(self, made: Any, kinds: Callable[[], Mapping[str, Kind | None]]) -> None:
        self._made, self._find_kinds = made, kinds
        self.words = made.__name__

    @cached_property
    def _kinds(self) -> Mapping[str, Kind | None]:
        # Only now: a class may have fields of its own type.
        return self._find_kinds()

    def _store(self, value: Any) -> Any:
        if not isinstance(value, self._made):
            value = self._load(value)
        return {
            name: at(name, kind.store, getattr(value, name)) if kind else getattr(value, name)
            for name, kind in self._kinds.items()
        }

    def _load(self, value: Any) -> Any:
        if isinstance(value, self._made):
            return value
        if not isinstance(value, Mapping) or not value.keys() <= self._kinds.keys():
            self.refuse(value)
        given = {}
        for name, item in value.items():
            kind = self._kinds[name]
            given[name] = at(name, kind.load, item) if kind else item
        try:
            return self._made(**given)
        except TypeError:  # A field lacks.
            self.refuse(value)


class Row(Kind):
    """An instance of a model, which is stored by its key and read again."""

    converts = True

    def __init__(self, model: type[Model]) -> None:
        self._model: Any = model
        self.words = f"a saved {model.__name__}, or its primary key"

    def _store(self, value: Any) -> Any:
        key = value.pk if isinstance(value, self._model) else value
        try:
            key = self._model._meta.pk.to_python(key)
        except (ValidationError, TypeError, ValueError):
            key = None
        if key is None or (isinstance(value, Model) and not isinstance(value, self._model)):
            self.refuse(value)
        if isinstance(key, tuple | list):
            return [part if isinstance(part, int) else str(part) for part in key]
        return key if isinstance(key, int) else str(key)

    def _load(self, value: Any) -> Any:
        if isinstance(value, self._model):
            return value
        key = tuple(value) if isinstance(value, list) else value
        try:
            return self._model._base_manager.get(pk=key)
        except self._model.DoesNotExist:
            pass
        except (ValidationError, TypeError, ValueError):
            self.refuse(value)
        # Not from within `except`: the error with the key is enough.
        raise self._model.DoesNotExist(
            f"{self._model._meta.label} with the primary key {value!r} does not exist. It may have "
            "been deleted since the task was enqueued."
        )


class Items(Kind):
    """A list, each of whose items is of one kind; or with a kind for each place."""

    def __init__(self, item: Kind | None, places: Sequence[Kind | None] | None = None) -> None:
        self._item, self._places = item, places
        self.converts = any(kind.converts for kind in (item, *(places or ())) if kind)
        self.words = "a list" if places is None else f"a list of {len(places)}"
        self.exact = frozenset({list, tuple}) if item is None and places is None else NOTHING

    @property
    def item(self) -> Kind | None:
        """Return the kind of each item, or None."""
        return self._item

    def _store(self, value: Any) -> Any:
        # Most lists are of one plain type.
        if (
            self._item is not None
            and type(value) in (list, tuple)
            and self._item.exact.issuperset(map(type, value))
        ):
            return value
        return self._each(value, lambda kind: kind.store)

    def _load(self, value: Any) -> Any:
        return self._each(value, lambda kind: kind.load) if self.converts else value

    def _each(self, value: Any, way: Callable[[Kind], Callable[[Any], Any]]) -> Any:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
            self.refuse(value)
        if self._places is None:
            kinds: Iterable[Kind | None] = [self._item] * len(value)
        elif len(value) == len(self._places):
            kinds = self._places
        else:
            self.refuse(value)
        if not isinstance(value, list | tuple):
            return value  # A list that is read in pages, or another sequence of the project's.
        return [
            at(place, way(kind), item) if kind else item
            for place, (kind, item) in enumerate(zip(kinds, value, strict=True))
        ]


class Values(Kind):
    """An object, each of whose values is of one kind."""

    def __init__(self, value: Kind | None) -> None:
        self._value = value
        self.converts = value is not None and value.converts
        self.words = "an object (a dict)"
        self.exact = frozenset({dict}) if value is None else NOTHING

    def _store(self, value: Any) -> Any:
        return self._each(value, lambda kind: kind.store)

    def _load(self, value: Any) -> Any:
        return self._each(value, lambda kind: kind.load)

    def _each(self, value: Any, way: Callable[[Kind], Callable[[Any], Any]]) -> Any:
        if not isinstance(value, Mapping):
            self.refuse(value)
        if self._value is None:
            return value
        each = way(self._value)
        return {key: at(key, each, item) for key, item in value.items()}


class Either(Kind):
    """One of several kinds: the first that admits a value, in the order in which they stand."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds = kinds
        self.converts = any(kind.converts for kind in kinds)
        self.words = " or ".join(kind.words for kind in kinds)
        self.exact = frozenset().union(*(kind.exact for kind in kinds if not self.converts))

    def _store(self, value: Any) -> Any:
        return self._first(value, lambda kind: kind.store)

    def _load(self, value: Any) -> Any:
        return self._first(value, lambda kind: kind.load)

    def _first(self, value: Any, way: Callable[[Kind], Callable[[Any], Any]]) -> Any:
        for kind in self._kinds:
            try:
                return way(kind)(value)
            except Misfit:
                continue
        self.refuse(value)


def at(place: object, change: Callable[[Any], Any], value: Any) -> Any:
    """Return the changed value; a `Misfit` is told the place."""
    try:
        return change(value)
    except Misfit as error:
        error.path.insert(0, place)
        raise
