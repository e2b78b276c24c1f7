"""A lazy sequence reads like a list whose items were all there."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from taskqueue.core.lazy import LazySequence

NAMES = ["a", "b", "c", "d"]


def lazily() -> LazySequence[str]:
    return LazySequence(len(NAMES), NAMES.__getitem__)


@pytest.mark.parametrize("place", [0, 3, -1, -4, slice(1, 3), slice(None, None, -1), slice(9, 12)])
def test_its_items_and_slices_are_those_of_the_list(place: int | slice) -> None:
    assert lazily()[place] == NAMES[place]


def test_it_reads_compares_and_adds_like_the_list() -> None:
    many = lazily()
    assert isinstance(many, Sequence)
    assert (len(many), bool(many), list(many), repr(many)) == (4, True, NAMES, repr(NAMES))
    assert (list(reversed(many)), "c" in many, many.index("c")) == (NAMES[::-1], True, 2)
    assert NAMES == many == NAMES
    assert many == lazily()
    assert many != NAMES[:3]
    assert many != tuple(NAMES)
    more = ["e"]
    assert (many + more, more + many) == ([*NAMES, "e"], ["e", *NAMES])
    assert not LazySequence(0, NAMES.__getitem__)


@pytest.mark.parametrize("place", [4, -5])
def test_a_place_beyond_its_end_is_an_index_error(place: int) -> None:
    with pytest.raises(IndexError):
        lazily()[place]


def test_it_makes_each_item_once_and_only_those_that_are_looked_at() -> None:
    asked: list[int] = []
    many = LazySequence(3, lambda place: asked.append(place) or object())  # type: ignore[func-returns-value]
    assert many.made() == asked == []
    last = many[-1]
    assert many[2] is last
    assert (many.made(), asked) == ([last], [2])
    assert list(many)[2] is last
    assert asked == [2, 0, 1]
