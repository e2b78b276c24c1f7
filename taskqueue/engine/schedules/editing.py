"""The columns of a schedule from its declaration, and changing an existing schedule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue import rules
from taskqueue.core.refusals import refusal as _
from taskqueue.core.refusals import why
from taskqueue.declarations.declared_schedules import definition_of, encode_call
from taskqueue.declarations.definition import registry
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.options import options_from_json
from taskqueue.declarations.scheduled import Scheduled, jitter_of, window_of
from taskqueue.declarations.workflows.graph_json import graph_to_json
from taskqueue.declarations.workflows.scheduling import Target, graph_of, workflow_options
from taskqueue.declarations.workflows.workflow import BaseWorkflow, workflows
from taskqueue.engine.making_specs import spec_of
from taskqueue.engine.schedules.advancing import begin_from, catch_up, move_next
from taskqueue.engine.schedules.times import is_exhausted
from taskqueue.exceptions import InvalidSchedule, InvalidWorkflow
from taskqueue.models import Schedule
from taskqueue.models.schedule import ScheduleSource
from taskqueue.rules import Rule

# The columns with the same names as in a declaration.
SAME = (
    "name", "args", "kwargs", "options", "missed", "missed_window", "overlap",
    "pause_after_failures", "jitter", "max_runs",
)  # fmt: skip
# A change of these columns makes a schedule count from now on.
COUNTING = frozenset({"rule", "is_enabled"})
# A change of these columns moves its next time, without losing any.
MOVING = frozenset({"jitter", "max_runs"})
# The columns that decide whether a jitter is too long; otherwise a stored jitter is kept.
SPREADING = frozenset({"rule", "jitter", "missed", "overlap"})
# Columns that follow the code; their change is not a change of the schedule itself.
SILENT = frozenset({"request"})


def fields_of(scheduled: Scheduled, target: Target) -> dict[str, Any]:
    """Return the columns for a checked declaration. Raises `InvalidSchedule`."""
    window, jitter = scheduled.missed_window, scheduled.jitter
    is_workflow = isinstance(target, BaseWorkflow)
    parse = workflow_options if is_workflow else _task_options
    options = parse(scheduled)
    request = snapshot_of(scheduled, target)
    return {
        "task_name": target.name,
        "is_workflow": is_workflow,
        "rule": scheduled.rule.as_json(),
        "args": json.loads(request["args"]),
        "kwargs": json.loads(request["kwargs"]),
        "options": {name: option_to_json(value) for name, value in options.items()},
        "request": request,
        "missed": str(scheduled.missed),
        "missed_window": None if window is None else window_of(window),
        "overlap": str(scheduled.overlap),
        "pause_after_failures": scheduled.pause_after_failures,
        "jitter": None if jitter is None else jitter_of(jitter),
        "max_runs": scheduled.max_runs,
        "is_enabled": scheduled.enabled,
    }


def _task_options(scheduled: Scheduled) -> dict[str, Any]:
    return options_from_json(scheduled.options)


def snapshot_of(scheduled: Scheduled, target: Target) -> dict[str, Any]:
    """Return the request from which runs are made, as plain JSON. Raises `InvalidSchedule`.

    For a task its spec, its arguments and its unique key; for a workflow its graph. The function of
    a workflow, and a callable that makes a unique key, are called here, because the arguments never
    change.
    """
    if isinstance(target, BaseWorkflow):
        return _graph_json(scheduled, target)
    args, kwargs, unique_key = encode_call(scheduled, target)
    spec = spec_of(definition_of(scheduled, target)).as_json()
    return {"spec": spec, "args": args, "kwargs": kwargs, "unique_key": unique_key}


def _graph_json(scheduled: Scheduled, workflow: BaseWorkflow) -> dict[str, Any]:
    graph = graph_of(scheduled, workflow)
    try:
        stored = graph_to_json(graph, lambda own: spec_of(own).as_json())
    except InvalidWorkflow as error:
        raise InvalidSchedule(why(error)) from None
    # In the form in which the database returns it: lists instead of tuples.
    plain = json.loads(json.dumps(stored))
    return {"graph": plain, "args": graph.args, "kwargs": graph.kwargs}


def target_of(schedule: Schedule) -> Target | None:
    """Return the definition or workflow that a schedule runs; None if it is not known here."""
    found = workflows if schedule.is_workflow else registry
    target: Target | None = found.find(schedule.task_name)
    return target


def scheduled_of(schedule: Schedule, rule: Rule | None = None) -> Scheduled:
    """Return the row as a declaration, with the given rule or its own.

    Raises `InvalidSchedule` if this version cannot read the rule.
    """
    same = {name: getattr(schedule, name) for name in SAME}
    own = rules.from_json(schedule.rule) if rule is None else rule
    return Scheduled(own, enabled=schedule.is_enabled, **same)


def require_call(schedule: Schedule, target: Target, changes: Mapping[str, Any]) -> None:
    """Raise `InvalidSchedule` if another target would get the arguments of the present one.

    An argument that is sensitive for one may be visible for the other.
    """
    if runs(schedule, target):
        return
    for name in ("args", "kwargs"):
        if name not in changes and getattr(schedule, name):
            raise InvalidSchedule(_(
                "Write {name} anew: those of {schedule!r} are meant for {task_name}, and not for "
                "{target}.",
                name=name, schedule=schedule.name, task_name=schedule.task_name,
                target=target.name,
            ))  # fmt: skip


def runs(schedule: Schedule, target: Target) -> bool:
    """Return whether the schedule runs that target."""
    is_workflow = isinstance(target, BaseWorkflow)
    return (schedule.task_name, schedule.is_workflow) == (target.name, is_workflow)


def new_schedule(
    name: str, source: ScheduleSource, fields: Mapping[str, Any], now: datetime
) -> Schedule:
    """Return the unsaved row of a new schedule."""
    return Schedule(
        name=name, source=source, created_at=now, changed_at=now, served_until=now, **fields
    )


def begin(connection: BaseDatabaseWrapper, schedule: Schedule, now: datetime) -> None:
    """Let a new schedule, whose row exists and is locked, count from now on."""
    begin_from(connection, schedule, now)
    schedule.save(using=connection.alias)


def apply(
    connection: BaseDatabaseWrapper, schedule: Schedule, fields: dict[str, Any], *, now: datetime
) -> list[str]:
    """Change a locked schedule, in the caller's transaction.

    Return the names of the changed columns. Times that have come by the old rule are served first.
    A new rule counts from now on.
    """
    changed = differing(schedule, fields)
    is_back = schedule.removed_at is not None
    if not changed and not is_back:
        return []
    if schedule.is_active and not SILENT.issuperset(changed):
        # A new policy or new arguments can wait for missed times; a new rule drops them.
        is_dropped = not COUNTING.isdisjoint(changed)
        why = "The schedule was changed before it was served." if is_dropped else ""
        catch_up(connection, schedule, now, why)
    was_exhausted = is_exhausted(schedule)
    for name in changed:
        setattr(schedule, name, fields[name])
    if "rule" in changed:
        schedule.run_count = 0
    schedule.removed_at = None
    goes_on = was_exhausted and not is_exhausted(schedule)
    if is_back or goes_on or not COUNTING.isdisjoint(changed):
        begin_from(connection, schedule, now)
    elif not MOVING.isdisjoint(changed):
        move_next(schedule)
    visible = [name for name in changed if name not in SILENT]
    if is_back:
        visible.append("declared again")
    if visible:
        schedule.changed_at = now
        schedule.trouble = ""
    schedule.save(using=connection.alias)
    return visible


def differing(schedule: Schedule, fields: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns that have another value."""
    return [name for name, value in fields.items() if getattr(schedule, name) != value]
