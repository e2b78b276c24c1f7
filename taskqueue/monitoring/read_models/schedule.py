"""Schedules, and the occurrences of their nominal times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db import DatabaseError
from django.db.models import QuerySet

from taskqueue import schedules
from taskqueue.access.permissions import VIEW_OCCURRENCES, VIEW_TASKS
from taskqueue.core.states import FINISHED, Missed, Overlap, TaskStatus
from taskqueue.engine.connections import database_alias
from taskqueue.engine.schedules.reading import (
    conditions,
    due_at,
    resting_reason,
    rule_of,
    rule_text,
)
from taskqueue.models import Occurrence, Schedule, Task
from taskqueue.models.schedule import OccurrenceStatus, ScheduleSource
from taskqueue.monitoring.read_models.base import Viewer, about, from_row, visible_arguments

MOST_RUNS = 20
MOST_TIMES = 5
CONDITIONS = ("removed", "disabled", "trouble", "paused", "over", "overdue")
TASK_STATUSES = ["", *(status.value for status in TaskStatus)]
HIDDEN = "hidden: no definition of this name is known here"


@dataclass(frozen=True, kw_only=True)
class ShownOccurrence:
    """One nominal time of a schedule, or many that were skipped together."""

    nominal_at: datetime
    nominal_until: datetime | None = about("The last time, if the row stands for many.")
    count: int = about("How many nominal times it stands for.")
    status: str = about(choices=[status.value for status in OccurrenceStatus])
    reason: str = about("Why it has no task.")
    task_id: UUID | None = about("The task may have been pruned since.")
    task_status: str = about(
        "The status of its task; empty until it ends, if you lack the permission to see tasks.",
        choices=TASK_STATUSES,
    )
    requested_by: str | None = about("The person who ran it by hand; null: the rule did.")
    created_at: datetime
    enqueued_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class ShownSchedule:
    """A schedule with its rule, its policies and its state."""

    name: str
    task: str = about("The name of the task type that it enqueues.", column="task_name")
    source: str = about(
        "`code`: declared beside its task, and edited there; `row`: edited here.",
        choices=[source.value for source in ScheduleSource],
    )
    rule: dict[str, Any] | None = about(
        "null: another version wrote it, and this one cannot read it."
    )
    stored_rule: Any = about(
        "The rule as stored, also one that cannot be read.", column="rule", in_json=False
    )
    rule_text: str = about("The rule in words.")
    args: list[Any] | None = about("null: you lack the permission to see arguments.", empty=HIDDEN)
    kwargs: dict[str, Any] | None = about(empty=HIDDEN)
    options: dict[str, Any] = about("Replace the options of the task type; durations are seconds.")
    missed: str = about(choices=[policy.value for policy in Missed])
    missed_window: timedelta | None = about("Seconds.")
    overlap: str = about(choices=[policy.value for policy in Overlap])
    pause_after_failures: int | None
    enabled: bool = about(column="is_enabled")
    state: str = about("The worst of its conditions, or `active`.")
    conditions: list[str] = about(
        "Why it does not run, the worst first; empty: it runs.", choices=CONDITIONS
    )
    why: str = about("Why it does not run, as a sentence; empty: it runs.")
    paused_at: datetime | None
    paused_by: str
    pause_reason: str
    removed_at: datetime | None = about("Since when no code declares it.")
    trouble: str = about("Why it could not be served.")
    failures_in_row: int
    created_at: datetime
    changed_at: datetime
    served_until: datetime
    next_at: datetime | None = about("null also while it is paused: its times are skipped.")
    last_nominal_at: datetime | None
    last_task_id: UUID | None
    last_task_status: str = about(
        "The status of that task; empty: none was enqueued, or you lack the permission to see it."
    )
    last_status: str = about(
        "The status at the end of the run that ended last.",
        choices=["", *sorted(status.value for status in FINISHED)],
    )
    last_finished_at: datetime | None
    last_return_value: Any
    last_error: str


@dataclass(frozen=True, kw_only=True)
class ScheduleDetails(ShownSchedule):
    """A schedule with its next times and its last runs."""

    next_times: list[datetime] = about("None while it is paused.")
    last_runs: list[ShownOccurrence] | None = about(
        "The newest first; null: you lack the permission to see them."
    )


S = TypeVar("S", bound=ShownSchedule)


def shown_schedules(rows: Sequence[Schedule], viewer: Viewer, now: datetime) -> list[ShownSchedule]:
    """Make the read models of rows, by one query."""
    statuses = _statuses((row.last_task_id for row in rows), viewer)
    return [_shown(ShownSchedule, row, viewer, now, statuses) for row in rows]


def schedule_details(row: Schedule, viewer: Viewer, now: datetime) -> ScheduleDetails:
    """The schedule with what belongs to it, by a few queries."""
    has_times = due_at(row) is not None
    sees_runs = viewer.has_perm(VIEW_OCCURRENCES)
    return _shown(
        ScheduleDetails,
        row,
        viewer,
        now,
        _statuses([row.last_task_id], viewer),
        next_times=times_to_come(row, now, count=MOST_TIMES) if has_times else [],
        last_runs=shown_occurrences(occurrences_of(row)[:MOST_RUNS], viewer) if sees_runs else None,
    )


def occurrences_of(schedule: Schedule) -> QuerySet[Occurrence]:
    """The rows of its occurrences, the newest first."""
    rows = Occurrence.objects.using(database_alias()).filter(schedule_id=schedule.pk)
    return rows.order_by("-nominal_at")


def shown_occurrences(rows: Iterable[Occurrence], viewer: Viewer) -> list[ShownOccurrence]:
    """Make the read models of rows, by a query if the tasks of some have not ended."""
    found = list(rows)
    statuses = _statuses((row.task_id for row in found if not row.task_status), viewer)
    return [
        from_row(
            ShownOccurrence,
            row,
            task_status=row.task_status or statuses.get(row.task_id, ""),
        )
        for row in found
    ]


def times_to_come(schedule: Schedule, now: datetime, *, count: int) -> list[datetime]:
    """The next nominal times, as if it was not paused; none of a rule that cannot be read."""
    rule = rule_of(schedule)
    if rule is None or not schedule.is_active or schedule.next_at is None:
        return []
    if rule.waits_for_end:
        return [schedule.next_at]
    try:
        return schedules.preview_rule(rule, count=count, after=now)
    except DatabaseError:
        raise
    except Exception:  # A rule that is stored may raise anything.
        return []


def _shown(
    model: type[S],
    row: Schedule,
    viewer: Viewer,
    now: datetime,
    statuses: dict[UUID | None, str],
    **values: Any,
) -> S:
    rule = rule_of(row)
    call = visible_arguments(row.task_name, row.args, row.kwargs, viewer)
    args, kwargs = (None, None) if call is None else call
    found = conditions(row, now)
    is_success = row.last_status == TaskStatus.SUCCEEDED
    sees_task = row.last_task_id is not None and viewer.has_perm(VIEW_TASKS)
    # A task that has been pruned had ended.
    last_task_status = statuses.get(row.last_task_id, row.last_status) if sees_task else ""
    return from_row(
        model,
        row,
        rule=None if rule is None else rule.as_json(),
        rule_text=rule_text(row),
        args=args,
        kwargs=kwargs,
        state=next(iter(found), "active"),
        conditions=found,
        why=resting_reason(row),
        next_at=due_at(row),
        last_task_status=last_task_status,
        last_return_value=row.last_return_value if is_success else None,
        **values,
    )


def _statuses(task_ids: Iterable[UUID | None], viewer: Viewer) -> dict[UUID | None, str]:
    """The statuses of the tasks that still exist; none for a viewer who may not see tasks."""
    if not viewer.has_perm(VIEW_TASKS):
        return {}
    wanted = {task_id for task_id in task_ids if task_id is not None}
    if not wanted:
        return {}
    tasks = Task.objects.using(database_alias()).filter(id__in=wanted)
    return dict(tasks.values_list("id", "status"))
