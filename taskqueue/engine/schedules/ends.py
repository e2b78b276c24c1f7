"""Record with a schedule the ends of its tasks and workflows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Exists, OuterRef, QuerySet

from taskqueue.conf import get_settings
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.declarations.payload import encode
from taskqueue.engine.control.audit import Act, Person, audit
from taskqueue.engine.statement import Fact
from taskqueue.engine.workflows.results import Results
from taskqueue.exceptions import InvalidArguments, InvalidWorkflow
from taskqueue.models import Occurrence, Schedule, Task, Workflow
from taskqueue.models.schedule import OccurrenceStatus

# The most ended runs that are recorded at once.
MOST_SETTLED = 500
# The result of a workflow with more members is not read for its schedule.
MOST_RETURNED = 200
# The name under which the app itself pauses a schedule.
ITSELF = "taskqueue"
# Whether a run of a schedule has ended without the schedule having recorded it. With an OFFSET,
# PostgreSQL turns no part into a join, and in the order of ids it looks them up by their keys, also
# if it planned this while the tables were empty.
HAS_ENDED_RUNS = Fact.of("""
    EXISTS (
        SELECT 1
        FROM taskqueue_occurrence AS occurrence
        WHERE occurrence.status = 'enqueued' AND NOT EXISTS (
            SELECT 1
            FROM taskqueue_task AS task
            WHERE task.id = occurrence.task_id
                AND task.status NOT IN ('cancelled', 'failed', 'succeeded')
            ORDER BY task.id
            LIMIT 1 OFFSET 0
        ) AND NOT EXISTS (
            SELECT 1
            FROM taskqueue_workflow AS workflow
            WHERE workflow.id = occurrence.workflow_id AND workflow.finished_at IS NULL
            ORDER BY workflow.id
            LIMIT 1 OFFSET 0
        )
    )
""")


def ended_runs(
    connection: BaseDatabaseWrapper, schedule_id: int | OuterRef
) -> QuerySet[Occurrence]:
    """Return the runs of a schedule that have ended and whose ends are not yet recorded."""
    tasks = Task.objects.using(connection.alias).filter(id=OuterRef("task_id"))
    workflows = Workflow.objects.using(connection.alias).filter(id=OuterRef("workflow_id"))
    return Occurrence.objects.using(connection.alias).filter(
        ~Exists(tasks.exclude(status__in=FINISHED)),
        ~Exists(workflows.filter(finished_at=None)),
        schedule_id=schedule_id,
        status=OccurrenceStatus.ENQUEUED,
    )


def settle_ended(
    connection: BaseDatabaseWrapper, schedule: Schedule, now: datetime
) -> datetime | None:
    """Record the ends of a locked schedule's runs, in order. Return when the last of them ended."""
    ended = list(ended_runs(connection, schedule.id).order_by("nominal_at")[:MOST_SETTLED])
    if not ended:
        return None
    tasks, workflows = _tasks(connection, ended), _workflows(connection, ended)
    for row in ended:
        # None: it was pruned or deleted before its end was recorded.
        run = tasks.get(row.task_id) or workflows.get(row.workflow_id)
        row.status = OccurrenceStatus.ENDED
        row.task_status = "" if run is None else str(run.status)
        row.finished_at = now if run is None else run.finished_at
    ended.sort(key=lambda row: row.finished_at or now)
    rows = Occurrence.objects.using(connection.alias)
    rows.bulk_update(ended, ["status", "task_status", "finished_at"])
    for row in ended:
        _count(connection, schedule, row, now)
    last = ended[-1]
    # Stored with the schedule, because the schedule outlives the run.
    schedule.last_status, schedule.last_finished_at = last.task_status, last.finished_at
    if workflow := workflows.get(last.workflow_id):
        error = workflow.error or {}
        schedule.last_return_value = _return_value(connection, workflow)
        schedule.last_error = _error(error.get("error_class"), error.get("message"))
    elif task := tasks.get(last.task_id):
        schedule.last_return_value = task.return_value
        schedule.last_error = _error(task.error_class, task.error_message)
    else:
        schedule.last_return_value, schedule.last_error = None, ""
    return last.finished_at


def _tasks(connection: BaseDatabaseWrapper, rows: Iterable[Occurrence]) -> dict[UUID | None, Task]:
    """Return the tasks of runs without their results: only the last result is kept."""
    lean = Task.objects.using(connection.alias).only(
        "status", "finished_at", "error_class", "error_message"
    )
    return {**lean.in_bulk([row.task_id for row in rows if row.task_id])}


def _workflows(
    connection: BaseDatabaseWrapper, rows: Iterable[Occurrence]
) -> dict[UUID | None, Workflow]:
    lean = Workflow.objects.using(connection.alias).only(
        "status", "finished_at", "error", "members"
    )
    return {**lean.in_bulk([row.workflow_id for row in rows if row.workflow_id])}


def _return_value(connection: BaseDatabaseWrapper, workflow: Workflow) -> Any:
    """Return the result of a workflow if it is no larger than a task's result may be."""
    if workflow.status != TaskStatus.SUCCEEDED or workflow.members > MOST_RETURNED:
        return None
    try:
        value = Results(connection.alias, workflow.id).return_value()
        encode(value, limit=get_settings().MAX_RESULT, what="result")
    except (InvalidArguments, InvalidWorkflow):  # Too large, or a part is missing.
        return None
    return value


def _error(error_class: str | None, message: str | None) -> str:
    return ": ".join(filter(None, [error_class, message]))


def _count(
    connection: BaseDatabaseWrapper, schedule: Schedule, row: Occurrence, now: datetime
) -> None:
    """Count consecutive failures, and pause the schedule after too many."""
    if row.task_status == TaskStatus.SUCCEEDED:
        schedule.failures_in_row = 0
    elif row.task_status == TaskStatus.FAILED:
        schedule.failures_in_row += 1
        number, limit = schedule.failures_in_row, schedule.pause_after_failures
        if limit is not None and number >= limit and schedule.paused_at is None:
            reason = "1 run failed." if number == 1 else f"{number} runs failed in a row."
            schedule.paused_at = now
            schedule.paused_by, schedule.pause_reason = "", reason
            person = Person(ITSELF, reason)
            audit(connection, "schedule", "pause", [Act(schedule.name)], person=person)
