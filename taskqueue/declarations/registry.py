"""The registry of tasks and workflows by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.discovery import (
    discover_tasks,
    is_same_function,
    is_same_place,
    place,
    run_of,
)
from taskqueue.exceptions import InvalidTask, TaskQueueError


class Registered(Protocol):
    """A declaration with a name, which runs a function."""

    name: str
    body: Callable[..., Any]


D = TypeVar("D", bound=Registered)


class BaseRegistry(Generic[D]):
    """Definitions of one kind, by name; filled by importing each app's `tasks` module."""

    # The word for one of them, which is also the name of its decorator.
    word: ClassVar[str]
    unknown: ClassVar[type[TaskQueueError]]

    def __init__(self) -> None:
        self._definitions: dict[str, D] = {}
        # The run of its module in which each was defined.
        self._runs: dict[str, object] = {}

    def register(self, definition: D) -> None:
        """Add a definition. Raises `InvalidTask` if another function has its name."""
        name, body = definition.name, definition.body
        known = self._definitions.get(name)
        if known is not None and not (
            is_same_function(known.body, body)
            or (is_same_place(known.body, body) and run_of(body) is not self._runs[name])
        ):
            raise InvalidTask(_(
                "Two functions are named {name!r}: {place} and {place_}. Give one of them another "
                "name with @{word}(name=...).",
                name=name, place=place(known.body), place_=place(body), word=self.word,
            ))  # fmt: skip
        self._definitions[name] = definition
        self._runs[name] = run_of(body)

    def find(self, name: str) -> D | None:
        """Return the definition of that name, or None."""
        if name not in self._definitions:
            discover_tasks()
        return self._definitions.get(name)

    def get(self, name: str) -> D:
        """Return the definition of that name. Raises `unknown`, which suggests the nearest."""
        definition = self.find(name)
        if definition is None:
            hint = did_you_mean(name, self._definitions)
            raise self.unknown(_(
                "No {word} is named {name!r}.{hint}", word=self.word, name=name, hint=hint
            ))  # fmt: skip
        return definition

    def all(self) -> list[D]:
        """Return all definitions, by name."""
        discover_tasks()
        return [self._definitions[name] for name in sorted(self._definitions)]
