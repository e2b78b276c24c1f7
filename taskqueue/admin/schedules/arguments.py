"""The arguments of a schedule, as its page shows them and its form reads them back."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.declarations.definition import registry
from taskqueue.declarations.redaction import REDACTED, ShownArguments, redacted, redacted_for
from taskqueue.display import EMPTY, as_json
from taskqueue.exceptions import InvalidSchedule
from taskqueue.models import Schedule

VIEW_ARGUMENTS = "taskqueue.view_arguments"


def visible_arguments(schedule: Schedule, *, to_any: bool) -> ShownArguments | None:
    """Return the arguments without the values of sensitive ones.

    None if no definition says which these are, unless the user may view any argument (`to_any`).
    """
    shown = redacted(schedule.task_name, schedule.args, schedule.kwargs)
    if shown is None and to_any:
        return ShownArguments(schedule.args, schedule.kwargs)
    return shown


@admin.display(description=gettext_lazy("arguments"))
def arguments(schedule: Schedule) -> SafeString:
    """Show the arguments as everybody may see them."""
    return _shown(visible_arguments(schedule, to_any=False))


@admin.display(description=gettext_lazy("arguments"))
def unredacted_arguments(schedule: Schedule) -> SafeString:
    """Show the arguments to users who may view any argument."""
    return _shown(visible_arguments(schedule, to_any=True))


@admin.display(description=gettext_lazy("arguments"))
def hidden_arguments(schedule: Schedule) -> str:
    """Explain why the arguments are hidden."""
    return _(
        "Hidden: this process does not know the definition, so it cannot tell which arguments are "
        "sensitive. To view them, you need the permission %(permission)s."
    ) % {"permission": VIEW_ARGUMENTS}


def _shown(shown: ShownArguments | None) -> SafeString:
    return EMPTY if shown is None else as_json({"args": shown.args, "kwargs": shown.kwargs})


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
    definition = registry.get(task_name)
    marks = redacted_for(definition, [None] * len(args), dict.fromkeys(kwargs))
    return (
        [
            _old(schedule.args, place, len(schedule.args) > place)
            if (value, marks.args[place]) == (REDACTED, REDACTED)
            else value
            for place, value in enumerate(args)
        ],
        {
            key: _old(schedule.kwargs, key, key in schedule.kwargs)
            if (value, marks.kwargs[key]) == (REDACTED, REDACTED)
            else value
            for key, value in kwargs.items()
        },
    )


def _old(values: Any, place: Any, is_there: bool) -> Any:
    if not is_there:
        raise InvalidSchedule(
            _("Enter the value %(place)s again: there is no stored value to keep.")
            % {"place": repr(place)}
        )
    return values[place]
