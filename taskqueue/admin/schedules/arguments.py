"""Reading back arguments that a form has shown with redacted values."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from taskqueue.declarations.definition import registry
from taskqueue.declarations.redaction import REDACTED, redacted_for
from taskqueue.exceptions import InvalidSchedule
from taskqueue.models import Schedule


def restored(
    schedule: Schedule | None, task_name: str, args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the form's values, with the original values for those shown as redacted.

    A value is only put back where it stays redacted. Raises `InvalidSchedule` if there is no value
    to put back, or if another task would show it.
    """
    if REDACTED not in [*args, *kwargs.values()]:
        return args, kwargs
    if schedule is None or task_name != schedule.task_name:
        raise InvalidSchedule(_("Enter the values shown as %(mark)s again.") % {"mark": REDACTED})
    marks = redacted_for(registry.get(task_name), [None] * len(args), dict.fromkeys(kwargs))
    old_args = dict(enumerate(schedule.args))
    return (
        [_kept(old_args, place, args[place], mark) for place, mark in enumerate(marks.args)],
        {key: _kept(schedule.kwargs, key, kwargs[key], mark) for key, mark in marks.kwargs.items()},
    )


def _kept(old: dict[Any, Any], place: Any, value: Any, mark: object) -> Any:
    """Return the old value in place of a redacted one."""
    if (value, mark) != (REDACTED, REDACTED):
        return value
    if place not in old:
        raise InvalidSchedule(
            _("Enter the value %(place)s again: there is no stored value to keep.")
            % {"place": repr(place)}
        )
    return old[place]
