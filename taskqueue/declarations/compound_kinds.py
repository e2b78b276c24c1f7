"""Kinds of arguments with parts, or that stand for rows: dataclasses, models, lists, unions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cached_property
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model

from taskqueue.core.refusals import joined
from taskqueue.core.refusals import refusal as _
from taskqueue.declarations.argument_kinds import NOTHING, Kind, Misfit, at


class Fields(Kind):
    """A dataclass."""

    converts = True

    def __init__(self, made: Any, kinds: Callable[[], Mapping[str, Kind | None]]) -> None:
        self._made, self._find_kinds = made, kinds
        self.words = made.__name__

    @cached_property
    def _kinds(self) -> Mapping[str, Kind | None]:
        # This is done late, because a class may have fields of its own type.
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
        if not isinstance(value, Mapping):
            self.refuse(value)
        if not self._required <= value.keys() <= self._kinds.keys():
            raise Misfit(self._words_of_fields, value)
        given = {}
        for name, item in value.items():
            kind = self._kinds[name]
            given[name] = at(name, kind.load, item) if kind else item
        try:
            return self._made(**given)
        except (TypeError, ValueError) as error:  # As its own `__post_init__` may raise.
            raise Misfit(self.words, value, str(error)) from None

    @cached_property
    def _required(self) -> frozenset[str]:
        return frozenset(
            each.name
            for each in fields(self._made)
            if each.init and each.default is MISSING and each.default_factory is MISSING
        )

    @cached_property
    def _words_of_fields(self) -> str:
        names = [
            name if name in self._required else _("{name} (optional)", name=name)
            for name in self._kinds
        ]
        return _("{type} with the fields {names}", type=self.words, names=joined(names, ", "))


class Row(Kind):
    """An instance of a model, which is stored by its key and read again."""

    converts = True

    def __init__(self, model: type[Model]) -> None:
        self._model: Any = model
        self.words = _("a saved {model}, or its primary key", model=model.__name__)

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
        self.words = _("a list") if places is None else _("a list of {count}", count=len(places))
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
        self.words = _("an object (a dict)")
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
    """One of several kinds: the first in order that admits a value."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds = kinds
        self.converts = any(kind.converts for kind in kinds)
        self.words = joined((kind.words for kind in kinds), _(" or "))
        self.exact = frozenset().union(*(kind.exact for kind in kinds if not self.converts))

    def _store(self, value: Any) -> Any:
        return self._first(value, lambda kind: kind.store)

    def _load(self, value: Any) -> Any:
        return self._first(value, lambda kind: kind.load)

    def _first(self, value: Any, way: Callable[[Kind], Callable[[Any], Any]]) -> Any:
        inside = []
        for kind in self._kinds:
            try:
                return way(kind)(value)
            except Misfit as error:
                if error.path or error.reason or error.wanted != kind.words:
                    inside.append(error.with_traceback(None))
        if len(inside) == 1:  # Only one of them could be meant: what is wrong within it.
            raise inside[0]
        self.refuse(value)
