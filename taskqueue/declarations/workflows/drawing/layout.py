"""Lay out a picture in layers from left to right, ordered so that few arrows cross.

The order within layers is found by the barycentre heuristic of Sugiyama, Tagawa and Toda (1981):
each node moves to the mean place of those that it is linked with in the layer before, then, from
the right, in the layer behind. An arrow over several layers has a point in each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from taskqueue.declarations.workflows.drawing.picture import Picture

WIDTH, HEIGHT = 180, 46
ACROSS, DOWN = 44, 18
MARGIN = 12
SWEEPS = 8
# With more points arrows go straight: nobody could follow them anyway.
MAX_POINTS = 4000

# A node by its name, or the place of an arrow in a layer that it crosses.
Item = str | tuple[int, int]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The upper left corner of each node, the points of each arrow, and the size of the whole."""

    corners: Mapping[str, Point]
    arrows: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def layout(picture: Picture) -> Layout:
    """Return the place of everything; the same picture always has the same layout."""
    layers: list[list[Item]] = [[node.name for node in layer] for layer in picture.layers]
    depth = {item: number for number, layer in enumerate(layers) for item in layer}
    spans = [depth[link.downstream] - depth[link.upstream] for link in picture.links]
    has_points = sum(spans) - len(spans) <= MAX_POINTS
    ways: list[list[Item]] = []
    for number, link in enumerate(picture.links):
        crossed: list[Item] = []
        if has_points:
            crossed = [
                (number, at) for at in range(depth[link.upstream] + 1, depth[link.downstream])
            ]
        for offset, item in enumerate(crossed, start=depth[link.upstream] + 1):
            layers[offset].append(item)
        ways.append([link.upstream, *crossed, link.downstream])
    before, behind = _neighbours(ways)
    _order(layers, before, behind)
    tops = _tops(layers, before)
    column = {item: number for number, layer in enumerate(layers) for item in layer}
    corners = {
        item: (MARGIN + column[item] * (WIDTH + ACROSS), MARGIN + top)
        for item, top in tops.items()
        if isinstance(item, str)
    }
    arrows = tuple(_arrow(way, column, tops) for way in ways)
    lowest = max((y for _, y in corners.values()), default=0) + HEIGHT
    return Layout(
        corners=corners,
        arrows=arrows,
        width=2 * MARGIN + max(len(layers) * (WIDTH + ACROSS) - ACROSS, 0),
        height=max([lowest, *(y for arrow in arrows for _, y in arrow)]) + MARGIN,
    )


Neighbours = dict[Item, list[Item]]


def _neighbours(ways: Iterable[Sequence[Item]]) -> tuple[Neighbours, Neighbours]:
    """Return the neighbours of each item in the layers before and after it."""
    before: Neighbours = {}
    behind: Neighbours = {}
    for way in ways:
        for one, other in pairwise(way):
            before.setdefault(other, []).append(one)
            behind.setdefault(one, []).append(other)
    return before, behind


def _order(layers: list[list[Item]], before: Neighbours, behind: Neighbours) -> None:
    """Order the items of each layer by the mean place of their neighbours, to and fro."""
    places = {item: place for layer in layers for place, item in enumerate(layer)}
    best, fewest = [list(layer) for layer in layers], _crossings(layers, behind, places)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        is_forward = sweep % 2 == 0
        for layer in layers if is_forward else reversed(layers):
            _sort(layer, before if is_forward else behind, places)
        crossings = _crossings(layers, behind, places)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    for layer, order in zip(layers, best, strict=True):
        layer[:] = order


def _sort(layer: list[Item], neighbours: Neighbours, places: dict[Item, int]) -> None:
    def mean(item: Item) -> float:
        linked = neighbours.get(item)
        return sum(places[each] for each in linked) / len(linked) if linked else places[item]

    layer.sort(key=mean)  # Stable: what is equal stays in its order.
    for place, item in enumerate(layer):
        places[item] = place


def _crossings(
    layers: Sequence[Sequence[Item]], behind: Neighbours, places: Mapping[Item, int]
) -> int:
    """Return how many pairs of arrows cross, counted with a binary indexed tree."""
    total = 0
    for layer, following in pairwise(layers):
        tree = [0] * (len(following) + 1)
        seen = 0
        for item in layer:
            ends = [places[other] for other in behind.get(item, ())]
            # Without points an arrow may end in a longer layer further on.
            ends = [end for end in ends if end < len(following)]
            for end in ends:
                total += seen - _sum_to(tree, end + 1)
            for end in ends:
                _add_at(tree, end + 1)
            seen += len(ends)
    return total


def _sum_to(tree: Sequence[int], place: int) -> int:
    total = 0
    while place:
        total += tree[place]
        place -= place & -place
    return total


def _add_at(tree: list[int], place: int) -> None:
    while place < len(tree):
        tree[place] += 1
        place += place & -place


def _tops(layers: Sequence[Sequence[Item]], before: Neighbours) -> dict[Item, float]:
    """Return how far down each item lies: near what it follows, and none upon another."""
    tops: dict[Item, float] = {}
    for layer in layers:
        wanted = []
        floor = 0.0
        for item in layer:
            linked = [tops[each] for each in before.get(item, ())]
            top = max(floor, sum(linked) / len(linked)) if linked else floor
            wanted.append(top)
            floor = top + _height(item)
        # Items that were moved down move up again, as far as there is room.
        excess = [
            top - sum(tops[each] for each in before[item]) / len(before[item])
            for item, top in zip(layer, wanted, strict=True)
            if item in before
        ]
        shift = min(sum(excess) / len(excess), wanted[0]) if excess else 0.0
        tops |= {item: top - max(shift, 0.0) for item, top in zip(layer, wanted, strict=True)}
    return tops


def _height(item: Item) -> float:
    return HEIGHT + DOWN if isinstance(item, str) else DOWN


def _arrow(
    way: Sequence[Item], column: Mapping[Item, int], tops: Mapping[Item, float]
) -> tuple[Point, ...]:
    """Return the points of an arrow: out of one node, through its places, into the other."""
    points: list[Point] = []
    for place, item in enumerate(way):
        left = MARGIN + column[item] * (WIDTH + ACROSS)
        middle = MARGIN + tops[item] + (HEIGHT / 2 if isinstance(item, str) else 0)
        if place > 0:
            points.append((left, middle))
        if place < len(way) - 1:
            points.append((left + WIDTH, middle))
    return tuple(points)
