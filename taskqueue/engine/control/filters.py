"""Which tasks a bulk verb is about, or a list shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.states import TaskStatus
from taskqueue.core.suggestions import nearest
from taskqueue.declarations.options import HIGHEST_PRIORITY, LOWEST_PRIORITY
from taskqueue.declarations.payload import storable
from taskqueue.engine.control.at_path import split_path
from taskqueue.engine.control.conditions import conditions
from taskqueue.engine.control.locking import TaskId, id_of
from taskqueue.exceptions import TaskDoesNotExist
from taskqueue.models import Task

Texts = str | Collection[str]
"""One text, or several of which one fits."""
Paths = Mapping[str, Texts]
"""By a dotted path, what stands there."""


def is_storable(text: object) -> bool:
    """Whether a database can hold the text; what it cannot hold, it cannot be asked for."""
    return isinstance(text, str) and storable(text, limit=len(text)) == text


@dataclass(frozen=True, kw_only=True)
class TaskFilter:
    """Those tasks that fit all that is given. Raises ValueError if nothing is given.

    An empty collection is a choice too: nothing fits it.
    """

    ids: Collection[TaskId] | None = None
    """Ids, or handles; kept as ids."""
    statuses: Collection[str] | None = None
    name: Texts = ""
    name_prefix: Texts = ""
    """How names begin. With `name` given too, one of both fits."""
    words: Collection[str] = ()
    """Each of them is the name, the last part of the name, or the unique key."""
    queue_name: Texts = ""
    worker: Texts = ""
    """A worker that holds the task, or has held it."""
    error_class: Texts = ""
    """The path of the class that the task ended with, or the class's name alone."""
    error_path: Texts = ""
    """The whole path of that class; of several, an empty one fits what ended without a class."""
    error_text: Texts = ""
    """A part of the message that the task ended with, in upper or lower case."""
    unique_key: Texts = ""
    """The key, in every scope. With `name` given too, only tasks of that definition."""
    schedule: Texts = ""
    """The name of the schedule that created it."""
    arguments: Paths = field(default_factory=dict)
    """By the parameter's name, or a positional argument's place, and the path below it.

    A number's text fits the number too. What a definition calls sensitive fits nothing.
    """
    arguments_of_unknown: bool = False
    """Ask of tasks too whose definition is not known here: it may call some sensitive."""
    metadata: Paths = field(default_factory=dict)
    lowest_priority: int | None = None
    highest_priority: int | None = None
    enqueued_after: datetime | None = None
    enqueued_before: datetime | None = None
    everything: bool = False
    """Says that no choice is meant."""

    def __post_init__(self) -> None:
        for name in ("ids", "statuses", "words"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} holds several, such as [{getattr(self, name)!r}].")
        if self.ids is not None:
            object.__setattr__(self, "ids", _ids(self.ids))
        _check_statuses(self.statuses or ())
        for name in ("name_prefix", "error_text", "words"):
            if name in self.given and "" in each_of(getattr(self, name)):
                raise ValueError(f"{name} holds an empty text, which fits everything.")
        for name in ("arguments", "metadata"):
            for path in getattr(self, name):
                split_path(path)
        for name in ("lowest_priority", "highest_priority"):
            _check_priority(name, getattr(self, name))
        for moment in (self.enqueued_after, self.enqueued_before):
            if moment is not None and moment.tzinfo is None:
                raise ValueError(f"enqueued_after and enqueued_before are aware, not {moment!r}.")
        if self.everything == self.is_choice:
            raise ValueError("Choose tasks by some property, or say everything=True.")

    @property
    def is_choice(self) -> bool:
        """Whether some tasks may not fit."""
        return bool(self.given.keys() - {"everything", "arguments_of_unknown"})

    @property
    def given(self) -> dict[str, Any]:
        """What is chosen by, by its name."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if not _is_absent(name, value)}

    def tasks(self, connection: BaseDatabaseWrapper) -> QuerySet[Task]:
        """The rows."""
        return self.among(Task.objects.using(connection.alias))

    def among(self, tasks: QuerySet[Task]) -> QuerySet[Task]:
        """Those of the rows that fit."""
        given = self.given
        if not all(map(is_storable, _texts(given))):
            return tasks.none()
        return tasks.filter(*conditions(given, tasks.db))

    def to_json(self) -> dict[str, Any]:
        """What is given, as JSON has it; `from_json` reads it back."""
        from taskqueue.engine.control.stored_filters import dump

        return dump(self)

    @classmethod
    def from_json(cls, document: Any) -> TaskFilter:
        """The filter that was stored. Raises ValueError for what is none."""
        from taskqueue.engine.control.stored_filters import load

        return load(document)


def each_of(texts: Texts) -> tuple[str, ...]:
    """The texts, be it one or several."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def _is_absent(name: str, value: Any) -> bool:
    if name in ("words", "arguments", "metadata", "everything", "arguments_of_unknown"):
        return not value
    return value is None or value == ""


def _texts(given: Mapping[str, Any]) -> Iterable[object]:
    for name, value in given.items():
        if name in ("arguments", "metadata"):
            for texts in value.values():
                yield from each_of(texts)
        elif name not in ("ids", "statuses") and isinstance(value, Collection):
            yield from each_of(value)


def _ids(given: Collection[TaskId]) -> tuple[UUID, ...]:
    try:
        return tuple(map(id_of, given))
    except TaskDoesNotExist as error:
        raise ValueError(f"ids holds what is none: {error}") from None


def _check_statuses(statuses: Collection[str]) -> None:
    known = [status.value for status in TaskStatus]
    for status in statuses:
        if status not in known:
            near = nearest(status, known)
            hint = f"Did you mean {near!r}?" if near else f"Choose from {known}."
            raise ValueError(f"There is no status {status!r}. {hint}")


def _check_priority(name: str, value: int | None) -> None:
    if value is not None and not (
        type(value) is int and LOWEST_PRIORITY <= value <= HIGHEST_PRIORITY
    ):
        raise ValueError(
            f"{name} is a whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}, not {value!r}."
        )
