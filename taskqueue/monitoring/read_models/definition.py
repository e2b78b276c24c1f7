"""Definitions: the tasks that the code of this process declares."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.declarations.argument_schema import argument_schema
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.option import Use
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.options import OPTIONS
from taskqueue.monitoring.read_models.base import about
from taskqueue.monitoring.read_models.pause import read_pauses

# Options that have their own field, or that do not affect the definition's tasks.
OWN = frozenset({"name", "queue_name", "priority", "max_attempts", "timeout", "schedule"})


@dataclass(frozen=True, kw_only=True)
class ShownDefinition:
    """A function under `@task`."""

    name: str
    summary: str = about("The first line of its docstring.")
    queue_name: str
    priority: int
    max_attempts: int
    timeout: timedelta | None
    is_async: bool
    is_paused: bool
    schedules: list[str] = about("The rules of the schedules that the code declares.")


@dataclass(frozen=True, kw_only=True)
class WholeDefinition(ShownDefinition):
    """The same with its options and arguments."""

    doc: str = about("Its docstring.")
    options: dict[str, Any] = about("Its further options, but those with their defaults.")
    arguments: dict[str, Any] = about("A JSON Schema (2020-12) of `args` and `kwargs`.")


def definitions(pattern: str = "*") -> list[ShownDefinition]:
    """Return the definitions whose names match, by name."""
    found = [each for each in registry.all() if fnmatchcase(each.name, pattern)]
    paused = _paused()
    return [ShownDefinition(**_fields(each, paused)) for each in found]


def definition_named(name: str) -> WholeDefinition:
    """Return a definition with all of its details. Raises `UnknownTask`."""
    definition = registry.get(name)
    options = {
        option.name: _in_json(value)
        for option in OPTIONS.values()
        if Use.TASK in option.use and option.name not in OWN
        if (value := getattr(definition.options, option.name)) != option.default
    }
    return WholeDefinition(
        **_fields(definition, _paused()),
        doc=inspect.cleandoc(definition.__doc__ or ""),
        options=options,
        arguments=argument_schema(definition),
    )


def _in_json(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else option_to_json(value)


def _paused() -> Sequence[str | None]:
    return [pause.definition for pause in read_pauses()]


def _fields(definition: BaseDefinition[Any, Any], paused: Sequence[str | None]) -> dict[str, Any]:
    options = definition.options
    return {
        "name": definition.name,
        "summary": inspect.cleandoc(definition.__doc__ or "").partition("\n")[0],
        "queue_name": options.queue_name,
        "priority": options.priority,
        "max_attempts": options.max_attempts or get_settings().MAX_ATTEMPTS,
        "timeout": options.timeout,
        "is_async": definition.is_async,
        "is_paused": None in paused or definition.name in paused,
        "schedules": [_rule(each.rule) for each in options.schedule],
    }


def _rule(rule: Any) -> str:
    """Return a rule in words; an invalid one, which the system checks report, as it was given."""
    return getattr(rule, "refusal", "") or getattr(rule, "text", "") or repr(rule)
