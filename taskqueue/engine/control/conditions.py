"""The descriptions of task filters for all interfaces, and their database conditions.

Texts are compared exactly: SQLite's LIKE would not distinguish A from a. Only arguments that
everybody who sees the tasks may see can be searched, because a user who can search for a value can
find it out, letter by letter or number by number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import reduce
from operator import and_, or_
from typing import Any

from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Left, Right
from django.db.models.lookups import Exact

from taskqueue.core.states import TaskStatus
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.redaction import REDACTED, redacted_for
from taskqueue.engine.control.at_path import AtPath, place_of, split_path
from taskqueue.models import Lease, Schedule

NOTHING = Q(pk__in=[])
# The columns in which a word without a qualifier is searched.
TEXTS = ("name", "unique_key", "error_class", "error_message")
MOST_POSITIONS = 1000
# The lookup of a column; or a function that makes a condition from the filter's value (texts, or
# texts by path) and the alias of the database.
Condition = str | Callable[[Any, str], Q]
# A column of arguments, and a path in it.
Place = tuple[str, tuple[str, ...]]
AnyDefinition = BaseDefinition[Any, Any]


def conditions(given: Mapping[str, Any], described: Mapping[str, Condition], alias: str) -> list[Q]:
    """Return a condition for each given filter, as it is described."""
    values = {name: [it] if isinstance(it, str) else it for name, it in given.items()}
    # Plain columns first: databases mostly check them, texts and JSON in this order.
    found = [
        condition(values[name], alias) if callable(condition) else Q(**{condition: values[name]})
        for name, condition in sorted(described.items(), key=lambda item: callable(item[1]))
        if name in values
    ]
    names = values.get("name")
    if names is not None or "name_prefix" in values:
        prefixes = values.get("name_prefix", ())
        begins = [Exact(Left("name", len(prefix)), prefix) for prefix in prefixes]
        found.insert(0, _any([Q(name__in=names or ()), *map(Q, begins)]))
    # Limited to tasks with these names if all are known, so that few definitions are searched.
    known = None if "name_prefix" in values else names
    or_unknown = "arguments_of_unknown" in values
    for path, texts in given.get("arguments", {}).items():
        found.append(_argument_is(path, _several(texts), names=known, or_unknown=or_unknown))
    return found


def _several(texts: Any) -> Collection[str]:
    return [texts] if isinstance(texts, str) else texts


def _any(those: Iterable[Q]) -> Q:
    return reduce(or_, those, NOTHING)


def _ends(column: str, text: str) -> Q:
    return Q(Exact(Right(column, len(text)), text))


def are_words(words: Collection[str], alias: str) -> Q:
    """Match tasks with each text in their name, unique key or error, in upper or lower case."""
    return reduce(and_, (_any(Q(**{f"{it}__icontains": word}) for it in TEXTS) for word in words))


def failed_since(moment: datetime, alias: str) -> Q:
    """Match tasks that failed after the moment."""
    return Q(status=TaskStatus.FAILED.value, finished_at__gt=moment)


def was_held(workers: Collection[str], alias: str) -> Q:
    """Match tasks that one of the workers holds or has held, by looking into each task's leases.

    With EXISTS, PostgreSQL would make a join and read all leases to find the few of a worker.
    """
    held = Lease.objects.using(alias).filter(task_id=OuterRef("id"), worker_id__in=workers)
    return Q(id=Subquery(held.values("task_id")[:1]))


def ended_with(classes: Collection[str], alias: str) -> Q:
    """Match tasks that ended with an error of one of the classes, named with or without modules."""
    return _any([Q(error_class__in=classes), *(_ends("error_class", f".{c}") for c in classes)])


def error_says(parts: Collection[str], alias: str) -> Q:
    """Match tasks whose error message contains one of the parts."""
    return _any(Q(error_message__icontains=part) for part in parts)


def is_of_schedule(names: Collection[str], alias: str) -> Q:
    """Match tasks that one of the schedules created."""
    schedules = Schedule.objects.using(alias).filter(name__in=names)
    return Q(schedule_id__in=list(schedules.values_list("id", flat=True)))


def metadata_is(paths: Mapping[str, Any], alias: str) -> Q:
    """Match tasks whose metadata has one of the values at each path."""
    return reduce(
        and_, (Q(AtPath("metadata", split_path(path), _several(paths[path]))) for path in paths)
    )


def _argument_is(
    path: str, values: Collection[str], *, names: Collection[str] | None, or_unknown: bool
) -> Q:
    """Match tasks of definitions known here whose argument has one of the values.

    The path begins with the parameter's name, or the position of a positional argument. `names` are
    the only tasks' names that can match, if known. `or_unknown` is only for people who may view
    arguments that cannot be redacted: it adds tasks whose definition is not known here. Raises
    ValueError if the path is not valid.
    """
    parameter, *rest = split_path(path)
    definitions = registry.all() if names is None else map(registry.find, names)
    holders: dict[Place, list[str]] = defaultdict(list)
    for definition in filter(None, definitions):
        for place in _places(definition, parameter, tuple(rest)):
            holders[place].append(definition.name)
    found = _any(
        Q(name__in=named) & Q(AtPath(column, inside, values))
        for (column, inside), named in holders.items()
    )
    if or_unknown:
        there = Q(AtPath("kwargs", (parameter, *rest), values))
        if place_of(parameter) is not None:
            there |= Q(AtPath("args", (parameter, *rest), values))
        found |= ~Q(name__in=[definition.name for definition in registry.all()]) & there
    return found


def _places(definition: AnyDefinition, parameter: str, rest: tuple[str, ...]) -> Iterator[Place]:
    """Yield the places where an enqueue may have put the argument, except sensitive ones."""
    if redacted_for(definition, [], {parameter: None}).kwargs[parameter] != REDACTED:
        yield "kwargs", (parameter, *rest)
    index, inside = _position(definition, parameter, rest)
    if index is None or index >= MOST_POSITIONS:
        return
    if redacted_for(definition, [None] * (index + 1), {}).args[index] != REDACTED:
        yield "args", (str(index), *inside)


def _position(
    definition: AnyDefinition, parameter: str, rest: Sequence[str]
) -> tuple[int | None, Sequence[str]]:
    """Return the index of a positional argument, if it is one, and the path below it."""
    if (given := place_of(parameter)) is not None:
        return given, rest
    names = definition.signature.positional_names(len(definition.signature.names) + 1)
    if parameter not in names:
        return None, rest
    if names.count(parameter) == 1:
        return names.index(parameter), rest
    further = place_of(rest[0]) if rest else None  # One of `*parameter`.
    return None if further is None else names.index(parameter) + further, rest[1:]


class FilterKind(Enum):
    """The type of value that a filter takes."""

    LIST = "several texts, of which one fits"
    WORDS = "several texts, all of which fit"
    TEXTS = "one text, or several of which one fits"
    PATHS = "texts by path"
    NUMBER = "whole number"
    MOMENT = "time"
    FLAG = "true or false"


# The default of a filter, if it is not None.
ABSENT: dict[FilterKind, Any] = {FilterKind.WORDS: (), FilterKind.TEXTS: "", FilterKind.FLAG: False}


@dataclass(frozen=True)
class Described:
    """How a filter is applied and offered. A face with an empty name does not offer it."""

    kind: FilterKind
    help: str = ""
    condition: Condition | None = None
    qualifier: str = ""  # The word before the colon in a search.
    parameter: str = ""  # The parameter of the REST API's list.
    flag: str = ""  # The flag of the CLI.
    syntax: str = ""  # The special values that its qualifier takes.


def described(
    kind: FilterKind, help: str = "", condition: Condition | None = None, **names: str
) -> Any:
    """Return a field of `TaskFilter` that holds its own description."""
    metadata = {"filter": Described(kind, help, condition, **names)}
    if kind is FilterKind.PATHS:
        return field(default_factory=dict, metadata=metadata)
    return field(default=ABSENT.get(kind), metadata=metadata)
