"""What the form of a schedule says at first."""

from __future__ import annotations

from typing import Any

from taskqueue.admin.schedules.arguments import visible_arguments
from taskqueue.admin.schedules.fields import as_text
from taskqueue.admin.schedules.rules import initial_of
from taskqueue.engine.schedules.reading import rule_of as rule_of_row
from taskqueue.models import Schedule

OWN_FIELDS = ("queue_name", "priority")
"""Options that have a field of their own."""


def initial_values(schedule: Schedule | None, *, sees_any: bool) -> dict[str, Any]:
    """What the form of that schedule says at first."""
    if schedule is None:
        return {}
    rule = rule_of_row(schedule)
    options = dict(schedule.options)
    values: dict[str, Any] = {
        "task": schedule.task_name,
        "enabled": schedule.is_enabled,
        **{name: options.pop(name, "") for name in OWN_FIELDS},
        "options": as_text(options),
        "missed": schedule.missed,
        "missed_window": schedule.missed_window,
        "overlap": schedule.overlap,
        "pause_after_failures": schedule.pause_after_failures,
        "seen": schedule.changed_at.isoformat(),
    }
    shown = visible_arguments(schedule, to_any=sees_any)
    if shown is not None:
        values |= {"args": as_text(shown.args), "kwargs": as_text(shown.kwargs)}
    return values if rule is None else values | initial_of(rule)
