"""The schedules that definitions declare: their names, and the calls and options of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.option import Use
from taskqueue.declarations.options import options_for, options_from_json
from taskqueue.declarations.scheduled import Scheduled, check_name, check_policies
from taskqueue.exceptions import ArgumentsDoNotBind, InvalidArguments, InvalidSchedule, InvalidTask
from taskqueue.rules import Rule

# Options of `.using` that make no sense for tasks of a schedule.
NOT_SCHEDULED = options_for(Use.USING).keys() - options_for(Use.SCHEDULE).keys()


def check_scheduled(scheduled: Scheduled, definition: BaseDefinition[Any, Any]) -> None:
    """Raise `InvalidSchedule` if the schedule cannot work with that definition."""
    if not isinstance(scheduled.rule, Rule):
        raise InvalidSchedule(
            "A schedule needs a rule such as Cron('0 6 * * *') or Every(minutes=5), "
            f"not one of type {type(scheduled.rule).__name__}."
        )
    scheduled.rule.check()
    check_name(scheduled.name or definition.name)
    check_policies(scheduled)
    if not isinstance(scheduled.enabled, bool):
        raise InvalidSchedule(f"enabled must be True or False, not {scheduled.enabled!r}.")
    encode_call(scheduled, definition)


def encode_call(
    scheduled: Scheduled, definition: BaseDefinition[Any, Any]
) -> tuple[str, str, str | None]:
    """Return arguments and unique key of its tasks as they are stored. Raises `InvalidSchedule`."""
    if not isinstance(scheduled.args, list | tuple) or not isinstance(scheduled.kwargs, Mapping):
        raise InvalidSchedule("args must be a list or tuple, and kwargs a mapping.")
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
    """Return the definition with the options of this schedule. Raises `InvalidSchedule`."""
    if not isinstance(scheduled.options, Mapping):
        raise InvalidSchedule(f"options must be a mapping, not {scheduled.options!r}.")
    for option in scheduled.options:
        if option in NOT_SCHEDULED:
            raise InvalidSchedule(
                f"{option} is not an option of a schedule: its rule decides when it runs."
            )
    if not scheduled.options:
        return definition
    try:
        return definition.using(**options_from_json(scheduled.options))
    except (InvalidTask, TypeError) as error:
        raise InvalidSchedule(str(error)) from None


def named(definition: BaseDefinition[Any, Any]) -> list[tuple[str, Scheduled]]:
    """Return the schedules of a definition by their names.

    Those without a name are named after the definition and their place: `name`, `name:2`.
    """
    schedules = []
    for place, scheduled in enumerate(definition.options.schedule, start=1):
        suffix = "" if place == 1 else f":{place}"
        schedules.append((scheduled.name or f"{definition.name}{suffix}", scheduled))
    return schedules
