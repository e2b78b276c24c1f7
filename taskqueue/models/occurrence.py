"""An occurrence: what became of one nominal time of a schedule."""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from taskqueue.models.clock import DatabaseClock
from taskqueue.models.permissions import VIEW_ONLY
from taskqueue.models.schedule import Schedule
from taskqueue.models.task import STATUSES as TASK_STATUSES
from taskqueue.models.task import Task


class OccurrenceStatus(StrEnum):
    """Where one nominal time stands; `ended` and `skipped` are final."""

    WAITING = "waiting"
    """Its task is enqueued once the run before it has ended."""
    ENQUEUED = "enqueued"
    """Its task has not ended yet."""
    ENDED = "ended"
    """Its task has ended, and may have been pruned since."""
    SKIPPED = "skipped"
    """It has no task; `reason` says why."""


OPEN = (OccurrenceStatus.WAITING.value, OccurrenceStatus.ENQUEUED.value)


class Occurrence(models.Model):
    """There is at most one for a schedule and a nominal time, whatever became of its task."""

    id = models.BigAutoField(primary_key=True)
    schedule = models.ForeignKey(
        Schedule, on_delete=models.CASCADE, related_name="occurrences", db_index=False
    )
    nominal_at = models.DateTimeField()
    nominal_until = models.DateTimeField(null=True)
    """The last nominal time, where one row stands for many that were skipped together."""
    count = models.PositiveIntegerField(default=1)
    """How many nominal times the row stands for."""
    status = models.CharField(
        max_length=10, choices=[(status.value, status.value) for status in OccurrenceStatus]
    )
    reason = models.CharField(max_length=1000, default="", blank=True)
    task = models.ForeignKey(
        Task,
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    task_status = models.CharField(max_length=10, choices=TASK_STATUSES, default="", blank=True)
    """The final status of its task."""
    requested_by = models.CharField(max_length=150, null=True)
    """Who had it run by hand; null for a nominal time of the rule."""
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
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["schedule", "nominal_at"], name="taskqueue_occurrence_nominal"
            ),
            models.CheckConstraint(
                condition=Q(status__in=[status.value for status in OccurrenceStatus]),
                name="taskqueue_occurrence_status",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.schedule_id} at {self.nominal_at.isoformat()}"
