"""System checks of what the project declares: schedules, limits, defaults of options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from django.core.checks import CheckMessage, Error, Warning

from taskqueue import conf
from taskqueue.core.suggestions import VERY_NEAR, did_you_mean
from taskqueue.declarations.declared_schedules import named
from taskqueue.declarations.defaults import check_defaults
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.placement import declared_limits, numbers_of
from taskqueue.declarations.scheduled import Scheduled, check_jitter, exceeded_interval
from taskqueue.declarations.workflows.scheduling import Target, all_targets, check_target
from taskqueue.exceptions import InvalidSchedule, InvalidTask


def check_schedules() -> list[CheckMessage]:
    """Check that every declared schedule can work, and that its name is unique."""
    try:
        declared = all_targets()
    except Exception as error:  # A module of the project may raise anything.
        return [
            Warning(
                "Schedules were not checked, because the definitions cannot be imported: "
                f"{type(error).__name__}: {error}",
                hint="Import the `tasks` modules of the installed apps one by one.",
                id="taskqueue.W002",
            )
        ]
    return list(_wrong_schedules(declared))


def _wrong_schedules(declared: Iterable[Target]) -> Iterator[CheckMessage]:
    places: dict[str, str] = {}
    for definition in declared:
        for name, scheduled in named(definition):
            try:
                check_target(scheduled, definition)
                check_jitter(scheduled)
            except InvalidSchedule as error:
                yield Error(f"The schedule {name!r} cannot work: {error}", id="taskqueue.E004")
            else:
                yield from _exceeded_intervals(name, scheduled)
            if not isinstance(name, str):
                continue
            if name in places:
                yield Error(
                    f"Two schedules are named {name!r}: of {places[name]} and {definition.name}.",
                    hint="Give one of them another name: Scheduled(rule, name=...).",
                    id="taskqueue.E005",
                )
            places.setdefault(name, definition.name)


def _exceeded_intervals(name: str, scheduled: Scheduled) -> Iterator[CheckMessage]:
    if (interval := exceeded_interval(scheduled)) is not None:
        yield Warning(
            f"The jitter of the schedule {name!r} is longer than the shortest interval of its "
            f"rule, {interval}: times that then start at the same moment do not all run.",
            hint="Shorten the jitter, or choose missed='all' with overlap='queue_all'.",
            id="taskqueue.W005",
        )


def check_option_defaults() -> list[CheckMessage]:
    """Check the options of `TASKQUEUE["DEFAULTS"]`, and that each pattern matches a definition."""
    found: list[CheckMessage] = []
    patterns = conf.get_settings().DEFAULTS
    for pattern, options in patterns.items():
        try:
            check_defaults(pattern, options)
        except InvalidTask as error:
            found.append(Error(str(error), id="taskqueue.E009"))
    try:
        names = [definition.name for definition in registry.all()] if patterns else []
    except Exception:  # `check_schedules` reports it.
        return found
    found += [
        Warning(
            f"TASKQUEUE['DEFAULTS'] has the pattern {pattern!r}, which matches no definition.",
            # Dotted paths have much in common that says nothing.
            hint=did_you_mean(pattern, names, cutoff=VERY_NEAR).strip() or None,
            id="taskqueue.W003",
        )
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
    return found


def check_pools() -> list[CheckMessage]:
    """Check that workers of the setting take the tasks of definitions that want a process."""
    if conf.get_settings().POOL != "thread":
        return []
    try:
        definitions = registry.all()
    except Exception:  # `check_schedules` reports it.
        return []
    return [
        Warning(
            f"TASKQUEUE['POOL'] is 'thread', so that workers leave the tasks of {definition.name} "
            "out: it has pool='process'.",
            hint="Start a worker for them with --pool process, or leave one of both out.",
            id="taskqueue.W004",
        )
        for definition in definitions
        if definition.options.pool == "process"
    ]


def check_limits() -> list[CheckMessage]:
    """Check that definitions which share a limit by its name declare the same one."""
    try:
        definitions = registry.all()
    except Exception:  # `check_schedules` reports it.
        return []
    return list(_unlike_limits(definitions))


def _unlike_limits(definitions: Iterable[BaseDefinition[Any, Any]]) -> Iterator[CheckMessage]:
    first: dict[str, tuple[str, dict[str, Any]]] = {}
    for definition in definitions:
        for limit in declared_limits(definition.limits, definition.name):
            place, other = first.setdefault(limit["name"], (definition.name, limit))
            if other != limit:
                yield Error(
                    f"Two limits are named {limit['name']!r} and differ: {numbers_of(other)} of "
                    f"{place}, and {numbers_of(limit)} of {definition.name}.",
                    hint="Declare the same limit in both, or give one of them another name.",
                    id="taskqueue.E007",
                )
