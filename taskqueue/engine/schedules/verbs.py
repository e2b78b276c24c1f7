"""Create, change, pause, resume, run and delete schedules at run time; preview their times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypedDict, Unpack
from uuid import UUID

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue import rules
from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.scheduled import Scheduled, check_jitter, check_name
from taskqueue.declarations.workflows.scheduling import Target
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.locking import Seen, require_seen
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import ANYWHERE, wake
from taskqueue.engine.schedules.advancing import catch_up, save
from taskqueue.engine.schedules.checking import (
    changed,
    checked_fields,
    refuse_declared,
    request_with,
    require_future,
    target_from,
)
from taskqueue.engine.schedules.editing import (
    SPREADING,
    apply,
    begin,
    differing,
    new_schedule,
)
from taskqueue.engine.schedules.reading import find, resting_reason, rule_text
from taskqueue.engine.schedules.runs import Runs
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import (
    Duration,
    InvalidSchedule,
    RequestedBefore,
    ScheduleExists,
    TransitionRefused,
)
from taskqueue.models import Occurrence, Schedule
from taskqueue.models.schedule import OccurrenceStatus, ScheduleSource
from taskqueue.rules import Rule

TRIES = 5


class Declared(TypedDict, total=False):
    """The arguments, options and policies of a schedule, as in `Scheduled`."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any] | None
    options: Mapping[str, Any] | None
    missed: str
    missed_window: Duration | None
    overlap: str
    pause_after_failures: int | None
    jitter: Duration | None
    max_runs: int | None
    enabled: bool


EDITABLE = frozenset({"rule", "task", *Declared.__annotations__})


def check_changes(changes: Mapping[str, Any]) -> None:
    """Raise `InvalidSchedule` if a schedule has no field of that name."""
    for name in changes:
        if name not in EDITABLE:
            hint = did_you_mean(name, EDITABLE)
            raise InvalidSchedule(_(
                "A schedule has nothing called {name!r} to change.{hint}", name=name, hint=hint
            ))  # fmt: skip


def create_schedule(
    name: str,
    task: Target | str,
    rule: Rule,
    *,
    by: object = "",
    reason: str = "",
    **declared: Unpack[Declared],
) -> Schedule:
    """Create a schedule that applies from now on; return its row.

    `task` is a task or a workflow, or its name. `options` are those of `.using(...)`, as JSON
    values (durations in seconds). Raises `InvalidSchedule` for a schedule that cannot work,
    including one whose rule has no future time, `ScheduleExists` if the name is taken, and
    `UnknownTask`.
    """
    given: dict[str, Any] = {
        key: {} if value is None and key in ("kwargs", "options") else value
        for key, value in declared.items()
    }
    scheduled = Scheduled(rule, name=check_name(name), **given)
    fields = checked_fields(scheduled, target_from(task))
    check_jitter(scheduled)
    connection = project_connection()
    require_future(rule, dialect_for(connection).now(connection))
    for _try in range(TRIES):
        try:
            with atomic(using=connection.alias):
                now = dialect_for(connection).now(connection)
                schedule = new_schedule(name, ScheduleSource.ROW, fields, now)
                schedule.save(using=connection.alias, force_insert=True)
                begin(connection, schedule, now)
                act = Act(name, detail=rule_text(schedule))
                audit(connection, "schedule", "create", [act], person=person(by, reason))
                wake(connection, ANYWHERE)
            return schedule
        except IntegrityError:
            # One of that name that was deleted meanwhile does not matter.
            if Schedule.objects.using(connection.alias).filter(name=name).exists():
                break
    raise ScheduleExists(_(
        "There is a schedule {name!r} already. Edit that one, or choose another name.", name=name
    ))  # fmt: skip


def edit_schedule(
    name: str, *, by: object = "", reason: str = "", seen: Seen = None, **changes: Any
) -> Schedule:
    """Change values that `create_schedule` takes; return the new row.

    Times that have come by the old rule are served first; a new rule counts from now on. Another
    task does not get the arguments of the old one: give them again. Raises `ScheduleDoesNotExist`,
    `InvalidSchedule`, `UnknownTask`, and `TransitionRefused` for a schedule that is declared in
    code, which is edited there.
    """
    check_changes(changes)
    with _locked(name, seen) as (connection, schedule, now):
        refuse_declared(schedule, _("edited"))
        scheduled, target = changed(schedule, changes)
        fields = checked_fields(scheduled, target)
        if not SPREADING.isdisjoint(differing(schedule, fields)):
            check_jitter(scheduled)
        if fields["rule"] != schedule.rule:
            require_future(scheduled.rule, now)
        columns = apply(connection, schedule, fields, now=now)
        if columns:
            act = Act(name, detail=", ".join(columns))
            audit(connection, "schedule", "edit", [act], person=person(by, reason))
            wake(connection, ANYWHERE)
    return schedule


def pause_schedule(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Pause a schedule: further times are recorded as skipped, running tasks continue.

    Raises `ScheduleDoesNotExist`. Pausing again replaces the person and the reason.
    """
    who = person(by, reason)
    with _locked(name, seen) as (connection, schedule, now):
        before = "paused" if schedule.paused_at is not None else ""
        catch_up(connection, schedule, now, "Paused before it was served.")
        schedule.paused_at = now
        schedule.paused_by, schedule.pause_reason = who.by, who.reason
        save(connection, schedule)
        audit(connection, "schedule", "pause", [Act(name, before)], person=who)


def resume_schedule(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """End its pause. Times that passed meanwhile are not made up for; its failures are reset.

    Raises `ScheduleDoesNotExist`, and `TransitionRefused` if it is not paused.
    """
    with _locked(name, seen) as (connection, schedule, now):
        if schedule.paused_at is None:
            raise TransitionRefused(_("Schedule {name!r} is not paused.", name=name))
        catch_up(connection, schedule, now, resting_reason(schedule))
        schedule.paused_at = None
        schedule.paused_by = schedule.pause_reason = ""
        schedule.failures_in_row = 0
        save(connection, schedule)
        audit(connection, "schedule", "resume", [Act(name, "paused")], person=person(by, reason))
        wake(connection, ANYWHERE)


def run_schedule(
    name: str,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    request_id: UUID | None = None,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
) -> Occurrence:
    """Run it once now, apart from its rule; return the occurrence, whose nominal time is now.

    Return the occurrence, whose nominal time is this moment. This also works while it is paused or
    not enabled. `args` and `kwargs` apply to this run only; with None, those of the schedule are
    used. The overlap policy applies: this raises `TransitionRefused` if the policy would skip the
    run, or if another task holds its unique key. Raises `ScheduleDoesNotExist`, and
    `InvalidSchedule` for arguments that do not fit. A second call with the same `request_id` raises
    `RequestedBefore`.
    """
    who = person(by, reason)
    with _locked(name, seen) as (connection, schedule, now):
        _refuse_second(connection, schedule, request_id)
        request = None if args is None and kwargs is None else request_with(schedule, args, kwargs)
        catch_up(connection, schedule, now)
        runs = Runs(connection, schedule, now)
        if refused := runs.refusal():
            raise TransitionRefused(
                _("Schedule {name!r} is not run: {reason}", name=name, reason=refused)
            )
        occurrence = runs.accept(now, requested_by=who.by, requested_as=request_id, request=request)
        if occurrence.status == OccurrenceStatus.SKIPPED:
            raise TransitionRefused(_(
                "Schedule {name!r} is not run: {reason}", name=name, reason=occurrence.reason
            ))  # fmt: skip
        if rules.from_json(schedule.rule).waits_for_end:
            schedule.next_at = None
        save(connection, schedule)
        with_others = "" if request is None else ", with other arguments"
        act = Act(name, detail=f"{_begun(occurrence)}{with_others}")
        audit(connection, "schedule", "run_now", [act], person=who)
    return occurrence


def delete_schedule(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Delete the schedule with its occurrences; its tasks are kept.

    Raises `ScheduleDoesNotExist`, and `TransitionRefused` if the code still declares it.
    """
    with _locked(name, seen) as (connection, schedule, _now):
        if schedule.removed_at is None:
            refuse_declared(schedule, _("removed"))
        audit(connection, "schedule", "delete", [Act(name)], person=person(by, reason))
        schedule.delete(using=connection.alias)


@contextmanager
def _locked(name: str, seen: Seen) -> Iterator[tuple[BaseDatabaseWrapper, Schedule, datetime]]:
    """Lock the schedule in a transaction, and yield it. Raises `ScheduleDoesNotExist`."""
    connection = project_connection()
    rows = Schedule.objects.using(connection.alias)
    with atomic(using=connection.alias):
        take_write_lock(connection)
        schedule = find(rows.select_for_update(), name)
        require_seen(schedule, seen, _("Schedule {name!r}", name=name))
        yield connection, schedule, dialect_for(connection).now(connection)


def _refuse_second(
    connection: BaseDatabaseWrapper, schedule: Schedule, request_id: UUID | None
) -> None:
    """Raise `RequestedBefore` if the locked schedule already has a run for that request."""
    rows = Occurrence.objects.using(connection.alias).filter(schedule_id=schedule.id)
    if request_id is not None and rows.filter(requested_as=request_id).exists():
        raise RequestedBefore(_(
            "Schedule {schedule!r} was run for this request already.", schedule=schedule.name
        ))  # fmt: skip


def _begun(occurrence: Occurrence) -> str:
    if occurrence.workflow_id is not None:
        return f"workflow {occurrence.workflow_id}"
    return "waits" if occurrence.task_id is None else f"task {occurrence.task_id}"
