"""The schedules that definitions declare: their names, what their runs are given, system checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.core.checks import CheckMessage, Error, Warning

from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.option import Use
from taskqueue.declarations.options import options_for, options_from_json
from taskqueue.declarations.scheduled import Scheduled, check_name, check_policies
from taskqueue.exceptions import ArgumentsDoNotBind, InvalidArguments, InvalidSchedule, InvalidTask
from taskqueue.rules import Rule

NOT_SCHEDULED = options_for(Use.USING).keys() - options_for(Use.SCHEDULE).keys()
"""Options of `.using` that make no sense for tasks of a schedule."""

_are_skipped: ContextVar[bool] = ContextVar("taskqueue_schedule_checks_are_skipped", default=False)


@contextmanager
def definitions_unread() -> Iterator[None]:
    """Leave these checks out: they import the definitions, which a worker's parent does not."""
    token = _are_skipped.set(True)
    try:
        yield
    finally:
        _are_skipped.reset(token)


def check_schedules(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Every declared schedule can work, and has a name of its own."""
    if _are_skipped.get():
        return []
    try:
        definitions = registry.all()
    except Exception as error:  # What a module of the project raises when it is imported.
        return [
            Warning(
                "Schedules were not checked, for the definitions cannot be imported: "
                f"{type(error).__name__}: {error}",
                hint="Import the `tasks` modules of the installed apps one by one.",
                id="taskqueue.W002",
            )
        ]
    messages: list[CheckMessage] = []
    places: dict[str, str] = {}
    for definition in definitions:
        for name, scheduled in named(definition):
            try:
                check_scheduled(scheduled, definition)
            except InvalidSchedule as error:
                messages.append(
                    Error(f"The schedule {name!r} cannot work: {error}", id="taskqueue.E004")
                )
            if not isinstance(name, str):
                continue
            if name in places:
                messages.append(
                    Error(
                        f"Two schedules are named {name!r}: of {places[name]} and "
                        f"{definition.name}.",
                        hint="Give one of them another name: Scheduled(rule, name=...).",
                        id="taskqueue.E005",
                    )
                )
            places.setdefault(name, definition.name)
    return messages


def check_scheduled(scheduled: Scheduled, definition: BaseDefinition[Any, Any]) -> None:
    """Raise `InvalidSchedule` for what cannot work with that definition."""
    if not isinstance(scheduled.rule, Rule):
        raise InvalidSchedule(
            "A schedule needs a rule such as Cron('0 6 * * *') or Every(minutes=5), "
            f"not one of type {type(scheduled.rule).__name__}."
        )
    scheduled.rule.check()
    check_name(scheduled.name or definition.name)
    check_policies(
        missed=scheduled.missed,
        missed_window=scheduled.missed_window,
        overlap=scheduled.overlap,
        pause_after_failures=scheduled.pause_after_failures,
    )
    if not isinstance(scheduled.enabled, bool):
        raise InvalidSchedule(f"enabled must be True or False, not {scheduled.enabled!r}.")
    encode_call(scheduled, definition)


def encode_call(
    scheduled: Scheduled, definition: BaseDefinition[Any, Any]
) -> tuple[str, str, str | None]:
    """Arguments and unique key of its tasks as they are stored. Raises `InvalidSchedule`."""
    if not isinstance(scheduled.args, list | tuple) or not isinstance(scheduled.kwargs, Mapping):
        raise InvalidSchedule("args of a schedule are a list or tuple, its kwargs a mapping.")
    try:
        return definition_of(scheduled, definition).encode(scheduled.args, dict(scheduled.kwargs))
    except (ArgumentsDoNotBind, InvalidArguments, InvalidTask) as error:
        raise InvalidSchedule(str(error)) from None
    except Exception as error:  # A callable unique_key is the project's. It may tell a secret.
        raise InvalidSchedule(
            f"Its unique_key raised {type(error).__name__} with these arguments."
        ) from None


def definition_of(
    scheduled: Scheduled, definition: BaseDefinition[Any, Any]
) -> BaseDefinition[Any, Any]:
    """The definition with the options of this schedule. Raises `InvalidSchedule`."""
    if not isinstance(scheduled.options, Mapping):
        raise InvalidSchedule(f"options must be a mapping, not {scheduled.options!r}.")
    for option in scheduled.options:
        if option in NOT_SCHEDULED:
            raise InvalidSchedule(
                f"{option} is no option of a schedule: its rule and policies say when it runs."
            )
    if not scheduled.options:
        return definition
    try:
        return definition.using(**options_from_json(scheduled.options))
    except (InvalidTask, TypeError) as error:
        raise InvalidSchedule(str(error)) from None


def named(definition: BaseDefinition[Any, Any]) -> list[tuple[str, Scheduled]]:
    """The schedules of a definition by their names.

    Where several have none, they are told apart by their place: `name`, `name:2`, `name:3`.
    """
    found = []
    for place, scheduled in enumerate(definition.options.schedule, start=1):
        suffix = "" if place == 1 else f":{place}"
        found.append((scheduled.name or f"{definition.name}{suffix}", scheduled))
    return found
