"""Redacted arguments of schedules that come back from forms and documents."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from taskqueue.declarations.redaction import REDACTED, redacted_for
from taskqueue.declarations.workflows.scheduling import Target
from taskqueue.engine.schedules.editing import runs
from taskqueue.exceptions import InvalidSchedule
from taskqueue.models import Schedule


def restored(
    schedule: Schedule | None, target: Target, args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the given values, with the original values for those shown as redacted.

    A value is only put back where it stays redacted. Raises `InvalidSchedule` if there is no value
    to put back, or if another task would show it.
    """
    if REDACTED not in [*args, *kwargs.values()]:
        return args, kwargs
    if schedule is None or not runs(schedule, target):
        raise InvalidSchedule(_("Enter the values shown as %(mark)s again.") % {"mark": REDACTED})
    marks = redacted_for(target, [None] * len(args), dict.fromkeys(kwargs))
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
