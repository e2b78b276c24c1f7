"""Noting the results of a schedule's runs."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Exists, OuterRef

from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.engine.control.audit import Act, Person, audit
from taskqueue.models import Occurrence, Schedule, Task
from taskqueue.models.occurrence import OccurrenceStatus

BATCH = 500
# The name under which the app itself pauses a schedule.
ITSELF = "taskqueue"


def settle_ended(
    connection: BaseDatabaseWrapper, schedule: Schedule, now: datetime
) -> datetime | None:
    """Note the ends of a locked schedule's runs, in their order; when the last of them ended."""
    alias = connection.alias
    going = Task.objects.using(alias).filter(id=OuterRef("task_id")).exclude(status__in=FINISHED)
    ended = list(
        Occurrence.objects.using(alias)
        .filter(~Exists(going), schedule_id=schedule.id, status=OccurrenceStatus.ENQUEUED)
        .order_by("nominal_at")[:BATCH]
    )
    if not ended:
        return None
    # Without what they returned, which may be large: only the last one's is kept.
    lean = Task.objects.using(alias).only("status", "finished_at", "error_class", "error_message")
    tasks = lean.in_bulk([row.task_id for row in ended if row.task_id is not None])
    for row in ended:
        _note(row, _task_of(tasks, row), now)
    ended.sort(key=lambda row: row.finished_at or now)
    Occurrence.objects.using(alias).bulk_update(ended, ["status", "task_status", "finished_at"])
    for row in ended:
        _count(connection, schedule, row, now)
    _keep(schedule, ended[-1], _task_of(tasks, ended[-1]))
    return ended[-1].finished_at


def _task_of(tasks: dict[UUID, Task], row: Occurrence) -> Task | None:
    return None if row.task_id is None else tasks.get(row.task_id)


def _note(row: Occurrence, task: Task | None, now: datetime) -> None:
    """A task that is gone was pruned or deleted before anybody looked."""
    row.status = OccurrenceStatus.ENDED
    row.task_status = "" if task is None else str(task.status)
    row.finished_at = now if task is None else task.finished_at


def _keep(schedule: Schedule, row: Occurrence, task: Task | None) -> None:
    """Keep the result with the schedule: it outlives the task."""
    schedule.last_status = row.task_status
    schedule.last_finished_at = row.finished_at
    schedule.last_return_value = None if task is None else task.return_value
    schedule.last_error = "" if task is None else _error_of(task)


def _count(
    connection: BaseDatabaseWrapper, schedule: Schedule, row: Occurrence, now: datetime
) -> None:
    """Count failures in a row, and pause the schedule where they are too many."""
    if row.task_status == TaskStatus.SUCCEEDED:
        schedule.failures_in_row = 0
    elif row.task_status == TaskStatus.FAILED:
        schedule.failures_in_row += 1
        limit = schedule.pause_after_failures
        if limit is not None and schedule.failures_in_row >= limit and schedule.paused_at is None:
            schedule.paused_at = now
            schedule.paused_by = ""
            number = schedule.failures_in_row
            schedule.pause_reason = (
                "1 run failed." if number == 1 else f"{number} runs failed in a row."
            )
            person = Person(ITSELF, schedule.pause_reason)
            audit(connection, "schedule", "pause", [Act(schedule.name)], person=person)


def _error_of(task: Task) -> str:
    if not task.error_class:
        return task.error_message
    return f"{task.error_class}: {task.error_message}"
