"""Create a copy of a schedule."""

from __future__ import annotations

from typing import Any

from taskqueue.engine.connections import project_connection
from taskqueue.engine.schedules.checking import changed
from taskqueue.engine.schedules.reading import find
from taskqueue.engine.schedules.verbs import Declared, check_changes, create_schedule
from taskqueue.models import Schedule


def copy_schedule(
    name: str, to: str, *, by: object = "", reason: str = "", **changes: Any
) -> Schedule:
    """Create the schedule `to` as a copy with these changes; return its row.

    The copy counts from now on, and has neither the pause nor the runs of the original, which may
    be declared in code. The changes are those of `edit_schedule`: another task does not get the
    arguments of the original. Raises `ScheduleDoesNotExist`, and the errors of `create_schedule`.
    """
    check_changes(changes)
    source = find(Schedule.objects.using(project_connection().alias), name)
    scheduled, target = changed(source, changes)
    declared: Any = {each: getattr(scheduled, each) for each in Declared.__annotations__}
    return create_schedule(to, target, scheduled.rule, by=by, reason=reason, **declared)
