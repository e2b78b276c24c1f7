"""A schedule: a rule in time that creates tasks."""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from taskqueue.core.policies import Missed, Overlap
from taskqueue.models.clock import DatabaseClock
from taskqueue.models.permissions import VIEW_ONLY
from taskqueue.models.task import LONGEST_NAME, Task


class ScheduleSource(StrEnum):
    """Where a schedule is edited."""

    CODE = "code"
    """Declared beside its task: the code says all but whether it is paused."""
    ROW = "row"
    """Created at run time: people edit it."""


class Schedule(models.Model):
    """Every nominal time of the rule up to `served_until` has its occurrence.

    What its tasks share is kept in `request`, as it was when code that knows the definition last
    looked at it: who serves the schedule need not know the definition.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    task_name = models.CharField(max_length=LONGEST_NAME)
    rule = models.JSONField()
    args = models.JSONField(default=list)
    kwargs = models.JSONField(default=dict)
    options = models.JSONField(default=dict)
    """What its tasks have in place of the definition's own options."""
    request = models.JSONField()
    missed = models.CharField(
        max_length=10,
        choices=[(policy.value, policy.value) for policy in Missed],
        default=Missed.LATEST.value,
    )
    missed_window = models.DurationField(null=True, blank=True)
    overlap = models.CharField(
        max_length=10,
        choices=[(policy.value, policy.value) for policy in Overlap],
        default=Overlap.SKIP.value,
    )
    pause_after_failures = models.PositiveIntegerField(null=True, blank=True)
    is_enabled = models.BooleanField(default=True)

    source = models.CharField(
        max_length=10,
        choices=[(source.value, source.value) for source in ScheduleSource],
        default=ScheduleSource.ROW.value,
    )
    declared_at = models.DateTimeField(null=True)
    """When code was last seen to declare it."""
    removed_at = models.DateTimeField(null=True)
    """Since when no code declares it any more: it rests, and its history stays."""
    paused_at = models.DateTimeField(null=True)
    """While it is paused its nominal times are recorded as skipped."""
    paused_by = models.CharField(max_length=150, default="", blank=True)
    pause_reason = models.CharField(max_length=1000, default="", blank=True)
    created_at = models.DateTimeField(db_default=DatabaseClock())
    changed_at = models.DateTimeField(db_default=DatabaseClock())
    """When its rule, arguments, options or policies were last changed."""

    served_until = models.DateTimeField()
    next_at = models.DateTimeField(null=True)
    """Its next nominal time; null where there is none, or none before a run has ended."""
    failures_in_row = models.PositiveIntegerField(default=0)
    trouble = models.TextField(default="", blank=True)
    """Why it could not be served; empty when all is well."""

    last_nominal_at = models.DateTimeField(null=True)
    """Of the last run that was enqueued."""
    last_task = models.ForeignKey(
        Task,
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    last_status = models.CharField(max_length=10, default="", blank=True)
    """What the run that ended last came to; this and what follows outlives its task."""
    last_finished_at = models.DateTimeField(null=True)
    last_return_value = models.JSONField(null=True)
    last_error = models.TextField(default="", blank=True)

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        permissions = [
            (
                "edit_schedules",
                "Can pause and delete schedules; with enqueue also create, edit and run them",
            )
        ]
        indexes = [
            models.Index(
                fields=["next_at"],
                name="taskqueue_schedule_next",
                condition=Q(next_at__isnull=False, is_enabled=True, removed_at__isnull=True),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(missed__in=[policy.value for policy in Missed]),
                name="taskqueue_schedule_missed",
            ),
            models.CheckConstraint(
                condition=Q(overlap__in=[policy.value for policy in Overlap]),
                name="taskqueue_schedule_overlap",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def paused_itself(self) -> bool:
        """Whether it is paused after so many failures in a row, and nobody paused it by hand."""
        limit = self.pause_after_failures
        has_failed = limit is not None and self.failures_in_row >= limit
        return self.paused_at is not None and not self.paused_by and has_failed

    @property
    def is_active(self) -> bool:
        """Whether its nominal times are looked after; a paused schedule records them as skipped."""
        return self.is_enabled and self.removed_at is None
