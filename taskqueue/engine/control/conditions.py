"""What a filter says, as conditions on the rows of tasks.

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
SIMPLE = {
    "ids": "id__in",
    "statuses": "status__in",
    "queue_name": "queue_name__in",
    "error_path": "error_class__in",
    "unique_key": "unique_key__in",
    "lowest_priority": "priority__gte",
    "highest_priority": "priority__lte",
    "enqueued_after": "enqueued_at__gt",
    "enqueued_before": "enqueued_at__lt",
}
"""What a column says by itself, as lookups of it."""


def conditions(given: Mapping[str, Any], alias: str) -> list[Q]:
    """One for each thing that is given."""
    found = [
        Q(**{lookup: _several(given[name]) if lookup.endswith("__in") else given[name]})
        for name, lookup in SIMPLE.items()
        if name in given
    ]
    if "name" in given or "name_prefix" in given:
        found.append(_is_named(_several(given.get("name", ())), given.get("name_prefix", ())))
    found += map(_is_word, given.get("words", ()))
    for name, condition in OTHERS.items():
        if name in given:
            found.append(condition(_several(given[name]), alias))
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


def _was_held(workers: list[str], alias: str) -> Q:
    """A look into the leases of each task. PostgreSQL would make a join of EXISTS, and read every
    lease there is to find those of a worker that has few."""
    held = Lease.objects.using(alias).filter(task_id=OuterRef("id"), worker_id__in=workers)
    return Q(id=Subquery(held.values("task_id")[:1]))


def _ended_with(classes: list[str], alias: str) -> Q:
    return _any([Q(error_class__in=classes), *(_ends("error_class", f".{c}") for c in classes)])


def _says(parts: list[str], alias: str) -> Q:
    return _any([Q(error_message__icontains=part) for part in parts])


def _is_of_schedule(names: list[str], alias: str) -> Q:
    schedules = Schedule.objects.using(alias).filter(name__in=names)
    return Q(schedule_id__in=list(schedules.values_list("id", flat=True)))


OTHERS: dict[str, Callable[[list[str], str], Q]] = {
    "worker": _was_held,
    "error_class": _ended_with,
    "error_text": _says,
    "schedule": _is_of_schedule,
}


def _argument(given: Mapping[str, Any], path: str, texts: Any) -> Q:
    """Asked of tasks with these names, where all are known: of few definitions, not of all."""
    names = None
    if "name" in given and "name_prefix" not in given:
        names = _several(given["name"])
    found = argument_is(path, _several(texts), names=names)
    if given.get("arguments_of_unknown"):
        found |= argument_of_unknown_is(path, _several(texts))
    return found
