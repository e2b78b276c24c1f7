"""Filters of tasks: one description of each field, for queries, storage and all interfaces.

A new filter is a field of `TaskFilter`. Its description gives the search its qualifier, REST its
parameter and field, and the CLI its flag.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY
from taskqueue.core.states import TaskStatus
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.payload import storable
from taskqueue.engine.control import conditions
from taskqueue.engine.control.at_path import split_path
from taskqueue.engine.control.conditions import Described, FilterKind, described
from taskqueue.engine.control.locking import TaskId, id_of
from taskqueue.exceptions import TaskDoesNotExist
from taskqueue.models import Task

LIST, WORDS, TEXTS, PATHS, NUMBER, MOMENT, FLAG = FilterKind
# One text, or several of which one must match.
Texts = str | Collection[str]
# Texts by a dotted path; one of them must be there.
Paths = Mapping[str, Texts]

STATUSES = [status.value for status in TaskStatus]
PRIORITIES = range(LOWEST_PRIORITY, HIGHEST_PRIORITY + 1)


def is_storable(text: object) -> bool:
    """Return whether a database can store the text, and so can be asked for it."""
    return isinstance(text, str) and storable(text, limit=len(text)) == text


@dataclass(frozen=True, kw_only=True)
class TaskFilter:
    """Tasks that match all given filters. Raises ValueError if none is given.

    An empty collection is a filter too: no task matches it.
    """

    ids: Collection[TaskId] | None = described(
        LIST, "task id", "id__in", qualifier="id", parameter="id"
    )
    statuses: Collection[str] | None = described(
        LIST, "task status", "status__in", qualifier="status", parameter="status", flag="--status"
    )
    name: Texts = described(
        TEXTS, "name of the definition", qualifier="name", parameter="name", flag="--name",
        syntax="`*` at the end matches any ending",
    )  # fmt: skip
    name_prefix: Texts = described(
        TEXTS, "beginning of the name; with `name` given too, either may match"
    )
    words: Collection[str] = described(
        WORDS,
        "text in the name, the unique key, the error's class or its message",
        conditions.are_words,
    )
    queue_name: Texts = described(
        TEXTS, "queue name", "queue_name__in",
        qualifier="queue", parameter="queue_name", flag="--queue",
    )  # fmt: skip
    worker: Texts = described(
        TEXTS, "worker that holds the task, or has held it", conditions.was_held,
        qualifier="worker", parameter="worker", flag="--worker",
    )  # fmt: skip
    error_class: Texts = described(
        TEXTS, "class of the task's error, with or without its module, such as KeyError",
        conditions.ended_with, qualifier="error", parameter="error", flag="--error",
    )  # fmt: skip
    error_path: Texts = described(
        TEXTS, "class of the task's error with its module; empty: no error", "error_class__in",
        qualifier="class",
    )  # fmt: skip
    error_text: Texts = described(
        TEXTS, "part of the error message, in upper or lower case", conditions.error_says
    )
    unique_key: Texts = described(
        TEXTS, "unique key, in every scope", "unique_key__in", qualifier="key", parameter="key"
    )
    schedule: Texts = described(
        TEXTS, "name of the schedule that created the task", conditions.is_of_schedule,
        qualifier="schedule", parameter="schedule",
    )  # fmt: skip
    arguments: Paths = described(
        PATHS, "values by the path of an argument, such as `order.id`; sensitive arguments match"
        " nothing", qualifier="args",
    )  # fmt: skip
    # Match also arguments of unknown definitions, for which nothing says which are sensitive.
    arguments_of_unknown: bool = described(FLAG)
    metadata: Paths = described(
        PATHS, "values by a path in the metadata", conditions.metadata_is, qualifier="metadata"
    )
    lowest_priority: int | None = described(
        NUMBER, "lowest priority", "priority__gte", qualifier="priority", parameter="priority",
        syntax="5, >5, <=0 or 1..10",
    )  # fmt: skip
    highest_priority: int | None = described(
        NUMBER, "highest priority", "priority__lte", qualifier="priority", parameter="priority",
        syntax="5, >5, <=0 or 1..10",
    )  # fmt: skip
    enqueued_after: datetime | None = described(
        MOMENT, "enqueued after this time", "enqueued_at__gt",
        qualifier="after", parameter="enqueued_after", flag="--after",
    )  # fmt: skip
    enqueued_before: datetime | None = described(
        MOMENT, "enqueued before this time", "enqueued_at__lt",
        qualifier="before", parameter="enqueued_before", flag="--before",
    )  # fmt: skip
    finished_after: datetime | None = described(
        MOMENT, "finished after this time", "finished_at__gt",
        qualifier="finished_after", parameter="finished_after", flag="--finished-after",
    )  # fmt: skip
    finished_before: datetime | None = described(
        MOMENT, "finished before this time", "finished_at__lt",
        qualifier="finished_before", parameter="finished_before", flag="--finished-before",
    )  # fmt: skip
    failed_after: datetime | None = described(
        MOMENT, "failed after this time", conditions.failed_since,
        qualifier="failed_after", parameter="failed_after", flag="--failed-after",
    )  # fmt: skip
    # Says explicitly that all tasks are meant.
    everything: bool = described(FLAG)

    def __post_init__(self) -> None:
        for name in of_kind(LIST, WORDS):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} takes several values, such as [{getattr(self, name)!r}].")
        if self.ids is not None:
            try:
                object.__setattr__(self, "ids", tuple(map(id_of, self.ids)))
            except TaskDoesNotExist as error:
                raise ValueError(f"ids contains something that is no id: {error}") from None
        for status in self.statuses or ():
            if status not in STATUSES:
                hint = did_you_mean(status, STATUSES, otherwise=f"Choose from {STATUSES}.")
                raise ValueError(f"There is no status {status!r}.{hint}")
        for name in ("name_prefix", "error_text", "words"):
            if name in self.given and "" in each_of(getattr(self, name)):
                raise ValueError(f"{name} contains an empty text, which matches everything.")
        for name in of_kind(PATHS):
            for path in getattr(self, name):
                split_path(path)
        for name in of_kind(NUMBER):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value not in PRIORITIES):
                raise ValueError(
                    f"{name} must be a whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}, "
                    f"not {value!r}."
                )
        for name in of_kind(MOMENT):
            moment = getattr(self, name)
            if moment is not None and moment.tzinfo is None:
                raise ValueError(f"{name} must be an aware datetime, not {moment!r}.")
        if self.everything == self.is_choice:
            raise ValueError("Choose tasks by at least one filter, or pass everything=True.")

    @property
    def is_choice(self) -> bool:
        """Whether it may exclude some tasks."""
        return bool(self.given.keys() - of_kind(FLAG))

    @property
    def given(self) -> dict[str, Any]:
        """The given filters, by name."""
        values = {name: getattr(self, name) for name in FILTERS}
        return {name: value for name, value in values.items() if _is_given(name, value)}

    def tasks(self, connection: BaseDatabaseWrapper) -> QuerySet[Task]:
        """Return the matching rows."""
        return self.among(Task.objects.using(connection.alias))

    def among(self, tasks: QuerySet[Task]) -> QuerySet[Task]:
        """Return the matching ones among these rows."""
        given = self.given
        if not all(is_storable(text) for texts in _texts(given) for text in each_of(texts)):
            return tasks.none()
        simple = {name: filter.condition for name, filter in FILTERS.items() if filter.condition}
        return tasks.filter(*conditions.conditions(given, simple, tasks.db))

    def to_json(self) -> dict[str, Any]:
        """Return the given filters as JSON, with every text in a list; `from_json` reads it."""
        return {name: _dumped(FILTERS[name].kind, value) for name, value in self.given.items()}

    @classmethod
    def from_json(cls, document: Any) -> TaskFilter:
        """Return the filter that was stored, checked as if somebody had typed it.

        Raises ValueError, also for an unknown name: if it were ignored, more tasks would match.
        """
        if not isinstance(document, Mapping):
            raise ValueError(f"A filter is stored as an object, not as {document!r}.")
        for name in document:
            if name not in FILTERS:
                raise ValueError(f"No filter has {name!r}.{did_you_mean(str(name), FILTERS)}")
        return cls(**{name: _loaded(name, value) for name, value in document.items()})


# The descriptions of the filters, by name.
FILTERS: Mapping[str, Described] = {
    field.name: field.metadata["filter"] for field in fields(TaskFilter)
}


def of_kind(*kinds: FilterKind) -> set[str]:
    """Return the names of the filters of these kinds."""
    return {name for name, filter in FILTERS.items() if filter.kind in kinds}


def each_of(texts: Texts) -> tuple[str, ...]:
    """Return one or several texts as a tuple."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def _is_given(name: str, value: Any) -> bool:
    if FILTERS[name].kind in (WORDS, PATHS, FLAG):
        return bool(value)
    return value is not None and value != ""


def _texts(given: Mapping[str, Any]) -> Iterator[Texts]:
    for name, value in given.items():
        if FILTERS[name].kind is PATHS:
            yield from value.values()
        elif FILTERS[name].kind in (TEXTS, WORDS):
            yield value


def _dumped(kind: FilterKind, value: Any) -> Any:
    match kind:
        case FilterKind.MOMENT:
            return value.isoformat()
        case FilterKind.PATHS:
            return {path: list(each_of(texts)) for path, texts in value.items()}
        case FilterKind.NUMBER | FilterKind.FLAG:
            return value
        case _:
            return [str(text) for text in each_of(value)]


def _loaded(name: str, value: Any) -> Any:
    match FILTERS[name].kind, value:
        case FilterKind.PATHS, Mapping():
            return {str(path): _loaded_texts(name, texts) for path, texts in value.items()}
        case FilterKind.PATHS, _:
            raise ValueError(f"{name} is stored as an object, not as {value!r}.")
        case FilterKind.MOMENT, _:
            try:
                return datetime.fromisoformat(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"{name} is stored as a time in ISO 8601, not as {value!r}."
                ) from None
        case (FilterKind.NUMBER, int()) | (FilterKind.FLAG, bool()):
            return value
        case FilterKind.NUMBER, _:
            raise ValueError(f"{name} is stored as a whole number, not as {value!r}.")
        case FilterKind.FLAG, _:
            raise ValueError(f"{name} is stored as true or false, not as {value!r}.")
    return _loaded_texts(name, value)


def _loaded_texts(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(map(is_storable, value)):
        raise ValueError(f"{name} is stored as a list of texts, not as {value!r}.")
    return tuple(value)
