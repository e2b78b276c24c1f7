"""Which arguments may be searched: those that everybody who sees the tasks may see.

Whoever may search for a value learns it, letter by letter or number by number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from django.db.models import Q

from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.redaction import REDACTED, redacted_for
from taskqueue.engine.control.at_path import AtPath, place_of, split_path

Place = tuple[str, tuple[str, ...]]
"""A column of arguments, and the path in it."""
AnyDefinition = BaseDefinition[Any, Any]


def argument_is(path: str, values: Collection[str], *, names: Collection[str] | None) -> Q:
    """Tasks whose argument has one of the values there, by definitions known here.

    The path begins with the parameter's name, or the place of a positional argument. `names` are
    the only tasks it is asked of, if that is known. Raises ValueError for what is no path.
    """
    parameter, *rest = split_path(path)
    holders: dict[Place, list[str]] = defaultdict(list)
    for definition in _definitions(names):
        for place in _places(definition, parameter, tuple(rest)):
            holders[place].append(definition.name)
    found = Q(pk__in=[])
    for (column, inside), named in holders.items():
        found |= Q(name__in=named) & Q(AtPath(column, inside, values))
    return found


def argument_of_unknown_is(path: str, values: Collection[str]) -> Q:
    """Tasks whose argument has one of the values there, and whose definition is not known here.

    For those alone who may view arguments that cannot be redacted.
    """
    parameter, *rest = split_path(path)
    known = [definition.name for definition in registry.all()]
    there = Q(AtPath("kwargs", (parameter, *rest), values))
    if place_of(parameter) is not None:
        there |= Q(AtPath("args", (parameter, *rest), values))
    return ~Q(name__in=known) & there


def _definitions(names: Collection[str] | None) -> list[AnyDefinition]:
    if names is None:
        return registry.all()
    return [found for name in names if (found := registry.find(name)) is not None]


def _places(definition: AnyDefinition, parameter: str, rest: tuple[str, ...]) -> Iterator[Place]:
    """Where an enqueue may have put the argument, without places that are shown to nobody."""
    if redacted_for(definition, [], {parameter: None}).kwargs[parameter] != REDACTED:
        yield "kwargs", (parameter, *rest)
    positional = _position(definition, parameter, rest)
    if positional is None:
        return
    index, inside = positional
    if redacted_for(definition, [None] * (index + 1), {}).args[index] != REDACTED:
        yield "args", (str(index), *inside)


def _position(
    definition: AnyDefinition, parameter: str, rest: Sequence[str]
) -> tuple[int, tuple[str, ...]] | None:
    """The index of a positional argument, and the path that is left below it."""
    given = place_of(parameter)
    if given is not None:
        return (given, tuple(rest)) if given < MOST_POSITIONS else None
    names = definition.signature.positional_names(len(definition.signature.names) + 1)
    if parameter not in names:
        return None
    index = names.index(parameter)
    if names.count(parameter) == 1:
        return index, tuple(rest)
    further = place_of(rest[0]) if rest else None  # One of `*parameter`.
    if further is None or further >= MOST_POSITIONS:
        return None
    return index + further, tuple(rest[1:])


MOST_POSITIONS = 1000
