"""A schedule in a time of one's own: made, served, looked at; and its runs ended by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connections

from taskqueue import Every, schedules
from taskqueue.core.states import TaskStatus
from taskqueue.engine.schedules.serving import Scheduler
from taskqueue.models import Occurrence, Schedule, Task
from taskqueue.rules import Rule
from tests.engine.steps import claim_one
from tests.sample.tasks import noop

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOURLY = Every(hours=1)


def make(
    rule: Rule = HOURLY,
    *,
    since: datetime = NOON,
    task: Any = noop,
    name: str = "s",
    **options: Any,
) -> Schedule:
    """A schedule that counts from `since` on."""
    schedule = schedules.create(name, task, rule, **options)
    first = since if rule.waits_for_end else rule.after(since)
    Schedule.objects.filter(id=schedule.id).update(served_until=since, next_at=first)
    return Schedule.objects.get(id=schedule.id)


def serve(now: datetime) -> float | None:
    """Serve schedules as a worker does when its clock shows that."""
    return Scheduler().step(connections["default"], now=now)


def at(hours: float) -> datetime:
    """So many hours past noon."""
    return NOON + timedelta(hours=hours)


def hours_of(**chosen: Any) -> list[float]:
    """The nominal times of the occurrences that fit, in hours past noon."""
    rows = Occurrence.objects.filter(**chosen).order_by("nominal_at")
    return [(row.nominal_at - NOON).total_seconds() / 3600 for row in rows]


def started() -> list[float]:
    """The nominal times that have a task, in hours past noon."""
    tasks = Task.objects.filter(schedule__isnull=False).order_by("nominal_at")
    return [(task.nominal_at - NOON).total_seconds() / 3600 for task in tasks if task.nominal_at]


def reasons() -> dict[float, str]:
    """Why which were skipped."""
    rows = Occurrence.objects.filter(status="skipped").order_by("nominal_at")
    return {(row.nominal_at - NOON).total_seconds() / 3600: row.reason for row in rows}


def task_at(hours: float) -> Task:
    """The task of a nominal time."""
    return Task.objects.get(nominal_at=at(hours))


def end(
    hours: float, status: TaskStatus = TaskStatus.SUCCEEDED, *, when: datetime | None = None
) -> None:
    """Have the run of that nominal time end."""
    now = when or at(hours)
    error = "builtins.ValueError" if status == TaskStatus.FAILED else ""
    Task.objects.filter(nominal_at=at(hours)).update(
        status=status, finished_at=now, error_class=error, return_value={"hours": hours}
    )


def run_one() -> UUID:
    """Have a worker start what is ready; its task."""
    return UUID(claim_one().task_id)
