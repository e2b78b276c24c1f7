"""The schedules that definitions declare: their names, and the calls and options of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from taskqueue.core.refusals import refusal as _
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.option import Use
from taskqueue.declarations.options import options_for, options_from_json
from taskqueue.declarations.scheduled import Scheduled, as_invalid, check_name, check_policies
from taskqueue.exceptions import ArgumentsDoNotBind, InvalidArguments, InvalidSchedule, InvalidTask
from taskqueue.rules import Rule

# Options of `.using` that make no sense for tasks of a schedule.
NOT_SCHEDULED = options_for(Use.USING).keys() - options_for(Use.SCHEDULE).keys()


class HasOptions(Protocol):
    """The options of a definition or workflow that declares schedules."""

    @property
    def schedule(self) -> tuple[Scheduled, ...]:
        """Return its schedules."""


class Declares(Protocol):
    """A declaration that has schedules: a definition or a workflow."""

    name: str

    @property
    def options(self) -> HasOptions:
        """Return its options."""


def check_scheduled(scheduled: Scheduled, definition: BaseDefinition[Any, Any]) -> None:
    """Raise `InvalidSchedule` if the schedule cannot work with that definition."""
    check_rule(scheduled, definition.name)
    encode_call(scheduled, definition)


def check_rule(scheduled: Scheduled, name: str) -> None:
    """Raise `InvalidSchedule` if the schedule cannot work, whatever it runs.

    `name` is its own where it has none.
    """
    if not isinstance(scheduled.rule, Rule):
        raise InvalidSchedule(_(
            "A schedule needs a rule such as Cron('0 6 * * *') or Every(minutes=5), not one of "
            "type {type}.",
            type=type(scheduled.rule).__name__,
        ))  # fmt: skip
    scheduled.rule.check()
    check_name(scheduled.name or name)
    check_policies(scheduled)
    if not isinstance(scheduled.enabled, bool):
        raise InvalidSchedule(_(
            "enabled must be True or False, not {enabled!r}.", enabled=scheduled.enabled
        ))  # fmt: skip


def encode_call(
    scheduled: Scheduled, definition: BaseDefinition[Any, Any]
) -> tuple[str, str, str | None]:
    """Return arguments and unique key of its tasks as they are stored. Raises `InvalidSchedule`."""
    require_arguments(scheduled)
    try:
        return definition_of(scheduled, definition).encode(scheduled.args, dict(scheduled.kwargs))
    except (ArgumentsDoNotBind, InvalidArguments, InvalidTask) as error:
        raise as_invalid(error) from None
    except Exception as error:  # A callable unique_key is the project's. It may tell a secret.
        raise InvalidSchedule(_(
            "Its unique_key raised {type} with these arguments.", type=type(error).__name__
        )) from None  # fmt: skip


def require_arguments(scheduled: Scheduled) -> None:
    """Raise `InvalidSchedule` if its arguments are none."""
    if not isinstance(scheduled.args, list | tuple) or not isinstance(scheduled.kwargs, Mapping):
        raise InvalidSchedule(_("args must be a list or tuple, and kwargs a mapping."))


def require_options(scheduled: Scheduled) -> None:
    """Raise `InvalidSchedule` if its options are none."""
    if not isinstance(scheduled.options, Mapping):
        raise InvalidSchedule(_(
            "options must be a mapping, not {options!r}.", options=scheduled.options
        ))  # fmt: skip


def definition_of(
    scheduled: Scheduled, definition: BaseDefinition[Any, Any]
) -> BaseDefinition[Any, Any]:
    """Return the definition with the options of this schedule. Raises `InvalidSchedule`."""
    require_options(scheduled)
    for option in scheduled.options:
        if option in NOT_SCHEDULED:
            raise InvalidSchedule(_(
                "{option} is not an option of a schedule: its rule decides when it runs.",
                option=option,
            ))  # fmt: skip
    if not scheduled.options:
        return definition
    try:
        return definition.using(**options_from_json(scheduled.options))
    except (InvalidTask, TypeError) as error:
        raise as_invalid(error) from None


def named(definition: Declares) -> list[tuple[str, Scheduled]]:
    """Return the schedules of a definition or a workflow by their names.

    Those without a name are named after the definition and their place: `name`, `name:2`.
    """
    schedules = []
    for place, scheduled in enumerate(definition.options.schedule, start=1):
        suffix = "" if place == 1 else f":{place}"
        schedules.append((scheduled.name or f"{definition.name}{suffix}", scheduled))
    return schedules
