"""A new schedule that is like another one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from taskqueue.core.suggestions import did_you_mean
from taskqueue.engine.connections import project_connection
from taskqueue.engine.schedules.checking import target_from
from taskqueue.engine.schedules.editing import require_call, scheduled_of, target_of
from taskqueue.engine.schedules.reading import find
from taskqueue.engine.schedules.verbs import EDITABLE, Declared, create_schedule
from taskqueue.exceptions import InvalidSchedule
from taskqueue.models import Schedule


def copy_schedule(
    name: str, to: str, *, by: object = "", reason: str = "", **changes: Any
) -> Schedule:
    """Create the schedule `to`, which is like that of this name but for the changes; its row.

    It counts from now on, and has no pause and no runs of the other one, which may be declared in
    code. The changes are those of `edit_schedule`: another task is not given the arguments of the
    one before. Raises `ScheduleDoesNotExist`, and what `create_schedule` raises.
    """
    for change in changes:
        if change not in EDITABLE:
            hint = did_you_mean(change, EDITABLE)
            raise InvalidSchedule(f"A schedule has nothing called {change!r} to change.{hint}")
    source = find(Schedule.objects.using(project_connection().alias), name)
    task = changes.pop("task", None)
    kept = target_of(source) if task in (None, source.task_name) else None
    target = kept or target_from(task or source.task_name)
    require_call(source, target, changes)
    scheduled = replace(scheduled_of(source, changes.get("rule")), **changes)
    if "missed" in changes and "missed_window" not in changes and scheduled.missed != "window":
        scheduled = replace(scheduled, missed_window=None)
    declared: Any = {each: getattr(scheduled, each) for each in Declared.__annotations__}
    return create_schedule(to, target, scheduled.rule, by=by, reason=reason, **declared)
