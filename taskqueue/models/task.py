"""A task: one request to run a definition with given arguments."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from taskqueue.models.clock import DatabaseClock
from taskqueue.models.permissions import VIEW_ONLY
from taskqueue.states import FINISHED, PENDING, WAITING, TaskStatus
from taskqueue.uuid7 import uuid7

STATUSES = [(status.value, status.value) for status in TaskStatus]
LONGEST_NAME = 255
LONGEST_QUEUE_NAME = 100
LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100


class Task(models.Model):
    """One request to run a definition; its options are those of the moment it was enqueued."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=LONGEST_NAME)
    queue_name = models.CharField(max_length=LONGEST_QUEUE_NAME, default="default")
    status = models.CharField(max_length=10, choices=STATUSES, default=TaskStatus.READY.value)
    priority = models.SmallIntegerField(default=0)
    run_after = models.DateTimeField(db_default=DatabaseClock())
    args = models.JSONField(default=list)
    kwargs = models.JSONField(default=dict)
    options = models.JSONField(default=dict)
    metadata = models.JSONField(default=dict)

    attempt = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    crashes = models.PositiveIntegerField(default=0)
    max_attempts = models.PositiveIntegerField(default=1)
    max_crashes = models.PositiveIntegerField(default=3)
    crash_delay = models.DurationField()
    deadline_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    lease_duration = models.DurationField(null=True)
    retention = models.DurationField(null=True)

    unique_key = models.CharField(max_length=255, null=True)
    unique_for = models.CharField(max_length=10, default="", blank=True)
    unique_until = models.DateTimeField(null=True)
    holds_unique_key = models.BooleanField(default=False)

    return_value = models.JSONField(null=True)
    error_class = models.CharField(max_length=255, default="", blank=True)
    error_message = models.TextField(default="", blank=True)

    enqueued_at = models.DateTimeField(db_default=DatabaseClock())
    ready_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    prune_after = models.DateTimeField(null=True)

    class Meta:
        default_permissions = VIEW_ONLY
        permissions = [("view_arguments", "Can view arguments that cannot be redacted")]
        indexes = [
            models.Index(
                F("queue_name"),
                F("priority").desc(),
                F("run_after"),
                F("id"),
                name="taskqueue_task_claim",
                condition=Q(status=TaskStatus.READY.value),
            ),
            models.Index(
                fields=["run_after"],
                name="taskqueue_task_promote",
                condition=Q(status__in=sorted(WAITING)),
            ),
            models.Index(
                fields=["deadline_at"],
                name="taskqueue_task_deadline",
                condition=Q(deadline_at__isnull=False, status__in=sorted(PENDING)),
            ),
            models.Index(
                fields=["expires_at"],
                name="taskqueue_task_expire",
                condition=Q(expires_at__isnull=False, status__in=sorted(PENDING)),
            ),
            models.Index(
                fields=["prune_after"],
                name="taskqueue_task_prune",
                condition=Q(prune_after__isnull=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["unique_key"],
                name="taskqueue_task_unique_key",
                condition=Q(holds_unique_key=True),
            ),
            models.CheckConstraint(
                condition=Q(status__in=[status.value for status in TaskStatus]),
                name="taskqueue_task_status",
            ),
            models.CheckConstraint(
                condition=Q(priority__range=(LOWEST_PRIORITY, HIGHEST_PRIORITY)),
                name="taskqueue_task_priority",
            ),
            models.CheckConstraint(
                condition=(
                    Q(status__in=sorted(FINISHED), finished_at__isnull=False)
                    | Q(finished_at=None) & ~Q(status__in=sorted(FINISHED))
                ),
                name="taskqueue_task_finished",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"
