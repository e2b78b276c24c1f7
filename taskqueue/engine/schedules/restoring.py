"""Restore redacted arguments of schedules that come back from forms and documents."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.declarations.redaction import REDACTED, secret_places
from taskqueue.declarations.workflows.scheduling import Target
from taskqueue.engine.schedules.editing import runs
from taskqueue.exceptions import InvalidSchedule
from taskqueue.models import Schedule

KEPT_SECRET = gettext_lazy(
    "Enter the sensitive values again: they are kept only while no argument changes."
)


def restored(
    schedule: Schedule | None, target: Target, args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the given values, with the stored values in place of redacted ones.

    A value is only restored where it stays redacted, and if no argument changes: a person who
    cannot see a secret must not be able to send it elsewhere by changing another argument.
    Otherwise, and if another task would show it, this raises `InvalidSchedule`.
    """
    if REDACTED not in [*args, *kwargs.values()]:
        return args, kwargs
    if schedule is None or not runs(schedule, target):
        raise InvalidSchedule(_("Enter the values shown as %(mark)s again.") % {"mark": REDACTED})
    old: dict[str, dict[Any, Any]] = {
        "args": dict(enumerate(schedule.args)), "kwargs": schedule.kwargs
    }  # fmt: skip
    new: dict[str, dict[Any, Any]] = {"args": dict(enumerate(args)), "kwargs": dict(kwargs)}
    kept = [
        (part, place)
        for part, place in secret_places(target, args, kwargs)
        if new[part][place] == REDACTED
    ]
    for part, place in kept:
        if place not in old[part]:
            raise InvalidSchedule(
                _("Enter the value %(place)s again: there is no stored value to keep.")
                % {"place": repr(place)}
            )
        new[part][place] = old[part][place]
    if kept and new != old:
        raise InvalidSchedule(str(KEPT_SECRET))
    return list(new["args"].values()), new["kwargs"]
