"""Schedules, and the occurrences of their nominal times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db import DatabaseError
from django.db.models import QuerySet

from taskqueue.access.permissions import VIEW_OCCURRENCES, VIEW_TASKS, VIEW_WORKFLOWS
from taskqueue.core.states import FINISHED, Missed, Overlap, TaskStatus
from taskqueue.core.workflow_states import WorkflowStatus
from taskqueue.declarations.redaction import ShownArguments
from taskqueue.engine.connections import database_alias
from taskqueue.engine.schedules.reading import (
    conditions,
    due_at,
    next_starts,
    rule_of,
    rule_text,
    why_not_running,
)
from taskqueue.models import Occurrence, Schedule, Task, Workflow
from taskqueue.models.schedule import OccurrenceStatus, ScheduleSource
from taskqueue.monitoring.read_models.base import (
    Viewer,
    about,
    from_row,
    visible_arguments,
    visible_call,
)

MOST_RUNS = 20
MOST_TIMES = 5
CONDITIONS = ("removed", "disabled", "trouble", "paused", "over", "overdue")
RUN_STATUSES = [each.value for each in (*TaskStatus, *WorkflowStatus)]
TASK_STATUSES = ["", *dict.fromkeys(RUN_STATUSES)]
HIDDEN = "hidden: no definition of this name is known here"


@dataclass(frozen=True, kw_only=True)
class ShownOccurrence:
    """One nominal time of a schedule, or many that were skipped together."""

    nominal_at: datetime
    nominal_until: datetime | None = about("The last time, if the row stands for many.")
    count: int = about("How many nominal times it stands for.")
    status: str = about(choices=[status.value for status in OccurrenceStatus])
    reason: str = about("Why it was not enqueued.")
    task_id: UUID | None = about("The task may have been pruned since.")
    workflow_id: UUID | None = about(
        "In place of a task, where the schedule runs a workflow; it may have been pruned since."
    )
    task_status: str = about(
        "The status of its task or workflow; empty until it ends, if you lack the permission to"
        " see those.",
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
    task: str = about(
        "The name of the task type, or of the workflow, that it enqueues.", column="task_name"
    )
    is_workflow: bool = about("Whether that is a workflow.")
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
    options: dict[str, Any] = about(
        "Replace the options of the task type or workflow; durations are seconds."
    )
    missed: str = about(choices=[policy.value for policy in Missed])
    missed_window: timedelta | None = about("Seconds.")
    overlap: str = about(choices=[policy.value for policy in Overlap])
    pause_after_failures: int | None
    jitter: timedelta | None = about("Seconds; each run starts up to so much after its time.")
    max_runs: int | None = about("The runs of its rule after which it is over; null: never.")
    run_count: int = about("Runs of its rule since that was last changed; none by hand.")
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
    last_workflow_id: UUID | None = about("In place of a task, where it runs a workflow.")
    last_task_status: str = about(
        "The status of that task or workflow; empty: none was enqueued, or you lack the permission"
        " to see it."
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

    next_times: list[datetime] = about("With its jitter; none while it is paused.")
    last_runs: list[ShownOccurrence] | None = about(
        "The newest first; null: you lack the permission to see them."
    )


S = TypeVar("S", bound=ShownSchedule)


def shown_schedules(rows: Sequence[Schedule], viewer: Viewer, now: datetime) -> list[ShownSchedule]:
    """Make the read models of rows, by one query, or two if some run workflows."""
    statuses = _statuses(map(_last_run, rows), viewer)
    return [_shown(ShownSchedule, row, viewer, now, statuses) for row in rows]


def schedule_details(row: Schedule, viewer: Viewer, now: datetime) -> ScheduleDetails:
    """Return the schedule with its details, by a few queries."""
    has_times = due_at(row) is not None
    sees_runs = viewer.has_perm(VIEW_OCCURRENCES)
    return _shown(
        ScheduleDetails,
        row,
        viewer,
        now,
        _statuses([_last_run(row)], viewer),
        next_times=times_to_come(row, now, count=MOST_TIMES) if has_times else [],
        last_runs=shown_occurrences(occurrences_of(row)[:MOST_RUNS], viewer) if sees_runs else None,
    )


def occurrences_of(schedule: Schedule) -> QuerySet[Occurrence]:
    """Return the rows of its occurrences, newest first."""
    rows = Occurrence.objects.using(database_alias()).filter(schedule_id=schedule.pk)
    return rows.order_by("-nominal_at")


def shown_occurrences(rows: Iterable[Occurrence], viewer: Viewer) -> list[ShownOccurrence]:
    """Make the read models of rows, by one or two queries if some have not ended."""
    found = list(rows)
    unknown = [(row.task_id, row.workflow_id) for row in found if not row.task_status]
    statuses = _statuses(unknown, viewer)
    return [
        from_row(
            ShownOccurrence,
            row,
            task_status=row.task_status or statuses.get(row.task_id or row.workflow_id, ""),
        )
        for row in found
    ]


def times_to_come(schedule: Schedule, now: datetime, *, count: int) -> list[datetime]:
    """Return when its next runs start, as if not paused; none if its rule cannot be read."""
    rule = rule_of(schedule)
    if rule is None:
        return []
    try:
        return next_starts(schedule, rule, now, count=count)
    except DatabaseError:
        raise
    except Exception:  # A stored rule may raise any error.
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
    call = visible_arguments_of(row, viewer)
    args, kwargs = (None, None) if call is None else call
    found = conditions(row, now)
    is_success = row.last_status == TaskStatus.SUCCEEDED
    task_id, workflow_id = _last_run(row)
    last_id = task_id or workflow_id
    sees = viewer.has_perm(VIEW_TASKS if workflow_id is None else VIEW_WORKFLOWS)
    # A run that has been pruned had ended.
    last_status = statuses.get(last_id, row.last_status) if last_id and sees else ""
    return from_row(
        model,
        row,
        rule=None if rule is None else rule.as_json(),
        rule_text=rule_text(row),
        args=args,
        kwargs=kwargs,
        state=next(iter(found), "active"),
        conditions=found,
        why=why_not_running(row),
        next_at=due_at(row),
        last_task_status=last_status,
        last_return_value=row.last_return_value if is_success else None,
        **values,
    )


def visible_arguments_of(row: Schedule, viewer: Viewer) -> ShownArguments | None:
    """Return the arguments of its runs without sensitive values; None if they are hidden."""
    visible = visible_call if row.is_workflow else visible_arguments
    return visible(row.task_name, row.args, row.kwargs, viewer)


# The ids of a task and of a workflow; a run has at most one of them.
Run = tuple[UUID | None, UUID | None]


def _last_run(row: Schedule) -> Run:
    return row.last_task_id, row.last_workflow_id


def _statuses(runs: Iterable[Run], viewer: Viewer) -> dict[UUID | None, str]:
    """Return the statuses of the tasks and workflows that still exist and the viewer may see."""
    found: dict[UUID | None, str] = {}
    wanted = list(runs)
    tasks = {task_id for task_id, _ in wanted if task_id is not None}
    if tasks and viewer.has_perm(VIEW_TASKS):
        rows = Task.objects.using(database_alias()).filter(id__in=tasks)
        found.update(rows.values_list("id", "status"))
    workflows = {workflow_id for _, workflow_id in wanted if workflow_id is not None}
    if workflows and viewer.has_perm(VIEW_WORKFLOWS):
        own = Workflow.objects.using(database_alias()).filter(id__in=workflows)
        found.update(own.values_list("id", "status"))
    return found
