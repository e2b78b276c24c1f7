"""Filters as conditions on the rows of tasks.

Texts are compared as they are: SQLite's LIKE would not tell A from a.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Left, Right
from django.db.models.lookups import Exact

from taskqueue.engine.control.at_path import AtPath, split_path
from taskqueue.engine.control.searchable import argument_is, argument_of_unknown_is
from taskqueue.models import Lease, Schedule

NOTHING = Q(pk__in=[])
Condition = str | Callable[[list[str], str], Q]
"""The lookup of a column; or what makes a condition of texts and the alias of the database."""


def conditions(given: Mapping[str, Any], described: Mapping[str, Condition], alias: str) -> list[Q]:
    """Return a condition for each filter that is given, by the conditions that are described."""
    found, others = [], []
    for name, condition in described.items():
        if name not in given:
            continue
        if callable(condition):
            others.append(condition(_several(given[name]), alias))
        else:
            is_several = condition.endswith("__in")
            found.append(Q(**{condition: _several(given[name]) if is_several else given[name]}))
    if "name" in given or "name_prefix" in given:
        found.append(_is_named(_several(given.get("name", ())), given.get("name_prefix", ())))
    found += map(_is_word, given.get("words", ()))
    found += others
    found += [_argument(given, path, texts) for path, texts in given.get("arguments", {}).items()]
    for path, texts in given.get("metadata", {}).items():
        found.append(Q(AtPath("metadata", split_path(path), _several(texts))))
    return found


def _several(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else list(value)


def _any(those: Collection[Q]) -> Q:
    return reduce(or_, those, NOTHING)


def _begins(column: str, text: str) -> Q:
    return Q(Exact(Left(column, len(text)), text))


def _ends(column: str, text: str) -> Q:
    return Q(Exact(Right(column, len(text)), text))


def _is_named(names: list[str], prefixes: Any) -> Q:
    beginnings = [_begins("name", prefix) for prefix in _several(prefixes)]
    return _any([Q(name__in=names), *beginnings])


def _is_word(word: str) -> Q:
    return Q(name=word) | Q(unique_key=word) | _ends("name", f".{word}")


def was_held(workers: list[str], alias: str) -> Q:
    """Match tasks that one of the workers holds or has held, by a look into each task's leases.

    PostgreSQL would make a join of EXISTS, and read all leases to find a worker's few.
    """
    held = Lease.objects.using(alias).filter(task_id=OuterRef("id"), worker_id__in=workers)
    return Q(id=Subquery(held.values("task_id")[:1]))


def ended_with(classes: list[str], alias: str) -> Q:
    """Match tasks that ended with an error of one of the classes, named with or without modules."""
    return _any([Q(error_class__in=classes), *(_ends("error_class", f".{c}") for c in classes)])


def error_says(parts: list[str], alias: str) -> Q:
    """Match tasks whose error message contains one of the parts."""
    return _any([Q(error_message__icontains=part) for part in parts])


def is_of_schedule(names: list[str], alias: str) -> Q:
    """Match tasks that one of the schedules created."""
    schedules = Schedule.objects.using(alias).filter(name__in=names)
    return Q(schedule_id__in=list(schedules.values_list("id", flat=True)))


def _argument(given: Mapping[str, Any], path: str, texts: Any) -> Q:
    """Asked of tasks with these names, where all are known: of few definitions, not of all."""
    names = None
    if "name" in given and "name_prefix" not in given:
        names = _several(given["name"])
    found = argument_is(path, _several(texts), names=names)
    if given.get("arguments_of_unknown"):
        found |= argument_of_unknown_is(path, _several(texts))
    return found
