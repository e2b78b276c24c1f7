"""An occurrence: what became of one nominal time of a schedule."""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.utils.translation import gettext_lazy as _

from taskqueue.models.parts import LOOSE, VIEW_ONLY, DatabaseClock, choices, one_of
from taskqueue.models.schedule import Schedule
from taskqueue.models.task import Task


class OccurrenceStatus(StrEnum):
    """Where one nominal time stands; `ended` and `skipped` are final."""

    # Its task is enqueued once the run before it has ended.
    WAITING = "waiting"
    # Its task has not ended yet.
    ENQUEUED = "enqueued"
    # Its task has ended, and may have been pruned since.
    ENDED = "ended"
    # It has no task; `reason` says why.
    SKIPPED = "skipped"


OPEN = (OccurrenceStatus.WAITING.value, OccurrenceStatus.ENQUEUED.value)


class Occurrence(models.Model):
    """There is at most one for a schedule and a nominal time, whatever became of its task."""

    id = models.BigAutoField(primary_key=True)
    schedule = models.ForeignKey(
        Schedule, models.CASCADE, related_name="occurrences", db_index=False
    )
    nominal_at = models.DateTimeField()
    # The last nominal time, where one row stands for many that were skipped together.
    nominal_until = models.DateTimeField(null=True)
    # How many nominal times the row stands for.
    count = models.PositiveIntegerField(default=1)
    status = models.CharField(max_length=10, choices=choices(OccurrenceStatus))
    reason = models.CharField(max_length=1000, default="")
    task = models.ForeignKey(Task, models.DO_NOTHING, null=True, related_name="+", **LOOSE)
    # The final status of its task.
    task_status = models.CharField(max_length=10, default="")
    # Who had it run by hand; null for a nominal time of the rule.
    requested_by = models.CharField(max_length=150, null=True)
    created_at = models.DateTimeField(db_default=DatabaseClock())
    enqueued_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("occurrence")
        verbose_name_plural = _("occurrences")
        indexes = [
            # Not a partial one: SQLite cannot use that where the status is a parameter.
            models.Index(
                fields=["status", "schedule", "nominal_at"], name="taskqueue_occurrence_open"
            )
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["schedule", "nominal_at"], name="taskqueue_occurrence_nominal"
            ),
            one_of("status", OccurrenceStatus, name="taskqueue_occurrence_status"),
        ]

    def __str__(self) -> str:
        return f"{self.schedule_id} at {self.nominal_at.isoformat()}"
