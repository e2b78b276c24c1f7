"""The initial values of a schedule's form, and the fields that hold options."""

from __future__ import annotations

from typing import Any

from django.forms.models import model_to_dict

from taskqueue.admin.schedules.fields import as_text
from taskqueue.admin.schedules.rules import initial_of
from taskqueue.admin.tasks.option_fields import labelled_options
from taskqueue.admin.tasks.option_values import shown_option
from taskqueue.declarations.option import Use
from taskqueue.declarations.options import OPTIONS
from taskqueue.engine.schedules.reading import rule_of
from taskqueue.exceptions import InvalidTask
from taskqueue.models import Schedule
from taskqueue.monitoring.read_models.base import Viewer
from taskqueue.monitoring.read_models.schedule import visible_arguments_of

POLICIES = (
    "missed", "missed_window", "overlap", "pause_after_failures", "jitter", "max_runs",
)  # fmt: skip
# Options that have their own field, and may not be among the further options.
OWN_FIELDS = ("queue_name", "priority")
# Options that have their own field, but may also be among the further options.
MORE_FIELDS = tuple(name for name in labelled_options(Use.SCHEDULE) if name not in OWN_FIELDS)


def shown_options(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the options that have a field from the stored ones, and return them as shown.

    An option that its field cannot show stays among the others.
    """
    shown: dict[str, Any] = {}
    for name in options.keys() & set(MORE_FIELDS):
        try:
            shown[name] = shown_option(OPTIONS[name], options[name])
        except (InvalidTask, TypeError, ValueError):
            continue
        del options[name]
    return shown


def initial_values(schedule: Schedule, viewer: Viewer) -> dict[str, Any]:
    """Return the initial values of the form."""
    rule = rule_of(schedule)
    options = dict(schedule.options)
    values: dict[str, Any] = {
        **model_to_dict(schedule, POLICIES),
        "task": schedule.task_name,
        "enabled": schedule.is_enabled,
        **{name: options.pop(name, "") for name in OWN_FIELDS},
        **shown_options(options),
        "options": as_text(options),
        "seen": schedule.changed_at.isoformat(),
    }
    shown = visible_arguments_of(schedule, viewer)
    values["fields_for"] = schedule.task_name
    if shown is not None:
        values |= {"args": as_text(shown.args), "kwargs": as_text(shown.kwargs)}
    return values if rule is None else values | initial_of(rule)
