"""Checks of a schedule that is created, changed or run by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from taskqueue.core.refusals import refusal as _
from taskqueue.core.retries import Backoff
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.scheduled import Scheduled
from taskqueue.declarations.workflows.scheduling import Target, check_target, target_named
from taskqueue.declarations.workflows.workflow import BaseWorkflow, workflows
from taskqueue.engine.schedules.editing import (
    fields_of,
    require_call,
    scheduled_of,
    snapshot_of,
    target_of,
)
from taskqueue.exceptions import InvalidSchedule, TransitionRefused, UnknownTask
from taskqueue.models import Schedule
from taskqueue.models.schedule import ScheduleSource
from taskqueue.rules import Rule


def target_from(task: Target | str) -> Target:
    """Return the registered definition or workflow. Raises `UnknownTask`."""
    if isinstance(task, BaseWorkflow):
        return workflows.get(task.name)
    # Django's own tasks are known by the path of their module.
    name = task.name if isinstance(task, BaseDefinition) else getattr(task, "module_path", task)
    if not isinstance(name, str):
        raise UnknownTask(_(
            "A schedule needs a task, a workflow, or its name, not {task!r}.", task=task
        ))  # fmt: skip
    return target_named(name)


def changed(schedule: Schedule, changes: Mapping[str, Any]) -> tuple[Scheduled, Target]:
    """Return the schedule with these changes as a declaration, and the definition that it will run.

    Raises `UnknownTask`, and `InvalidSchedule` if another task would get its arguments.
    """
    changes = dict(changes)
    task = changes.pop("task", None)
    # Another definition may have the same name: without a new name the schedule keeps its own.
    kept = target_of(schedule) if task in (None, schedule.task_name) else None
    target = kept or target_from(task or schedule.task_name)
    require_call(schedule, target, changes)
    # A rule that this version cannot read can still be replaced.
    scheduled = replace(scheduled_of(schedule, changes.get("rule")), **changes)
    if "missed" in changes and "missed_window" not in changes and scheduled.missed != "window":
        scheduled = replace(scheduled, missed_window=None)
    return scheduled, target


def checked_fields(scheduled: Scheduled, target: Target) -> dict[str, Any]:
    """Return the columns of a checked declaration. Raises `InvalidSchedule`."""
    check_target(scheduled, target)
    fields = fields_of(scheduled, target)
    for name, value in scheduled.options.items():
        if not _is_plain(value):
            raise InvalidSchedule(_(
                "{name} is no JSON value: a schedule that is created at run time can keep it only "
                "with its declaration, in @task(...) or @workflow(...).",
                name=name,
            ))  # fmt: skip
    return fields


def _is_plain(value: Any) -> bool:
    """Return whether JSON keeps the value; a timedelta is kept as seconds."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, type):
        return issubclass(value, BaseException)
    plain = bool | int | float | str | timedelta | datetime | Backoff
    return value is None or isinstance(value, plain)


def require_future(rule: Rule, now: datetime) -> None:
    """Raise `InvalidSchedule` for a rule without a future time."""
    if rule.waits_for_end:
        is_over = rule.end is not None and rule.end <= now
    else:
        is_over = rule.after(now) is None
    if is_over:
        raise InvalidSchedule(_("The rule has no future time: {text}.", text=rule.text))


def refuse_declared(schedule: Schedule, what: str) -> None:
    """Raise `TransitionRefused` for a schedule that is declared in code."""
    if schedule.source == ScheduleSource.CODE:
        raise TransitionRefused(_(
            "Schedule {schedule!r} is declared in code, beside {task_name}: it is {done} there. It "
            "can be paused meanwhile.",
            schedule=schedule.name, task_name=schedule.task_name, done=what,
        ))  # fmt: skip


def request_with(
    schedule: Schedule, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the request of a run with other arguments. Raises `InvalidSchedule`."""
    target = target_of(schedule)
    if target is None:
        raise InvalidSchedule(_(
            "{task_name} is not known here, so its arguments cannot be checked. Run the schedule "
            "with other arguments where the project's tasks are imported.",
            task_name=schedule.task_name,
        ))  # fmt: skip
    own = scheduled_of(schedule)
    scheduled = replace(
        own,
        args=own.args if args is None else args,
        kwargs=own.kwargs if kwargs is None else kwargs,
    )
    check_target(scheduled, target)
    return snapshot_of(scheduled, target)
