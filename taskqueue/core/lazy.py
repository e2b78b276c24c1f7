"""Sequences whose items are made when they are first accessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """A sequence that makes each item when it is first accessed, and keeps it.

    It reads, compares and adds like a list; slices and sums of it are lists.
    """

    def __init__(self, size: int, make: Callable[[int], T]) -> None:
        self._make = make
        self._items: list[T | None] = [None] * size

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        item = self._items[place]
        if item is None:
            item = self._items[place] = self._make(place % len(self))
        return item

    def __iter__(self) -> Iterator[T]:
        for place, item in enumerate(self._items):
            yield self[place] if item is None else item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list | LazySequence) and list(self) == list(other)

    def __add__(self, other: Sequence[T]) -> list[T]:
        return [*self, *other]

    def __radd__(self, other: Sequence[T]) -> list[T]:
        return [*other, *self]

    def __repr__(self) -> str:
        return repr(list(self))

    def made(self) -> list[T]:
        """Return the items that were accessed."""
        return [item for item in self._items if item is not None]
