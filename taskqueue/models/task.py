"""A task: one request to run a definition with given arguments."""

from __future__ import annotations

from enum import IntEnum

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from taskqueue.core.states import FINISHED, PENDING, WAITING, TaskStatus
from taskqueue.core.uuid7 import uuid7
from taskqueue.models.clock import DatabaseClock
from taskqueue.models.permissions import VIEW_ONLY
from taskqueue.models.worker import LONGEST_NAME as LONGEST_WORKER_NAME

STATUSES = [(status.value, status.value) for status in TaskStatus]
LONGEST_NAME = 255
LONGEST_QUEUE_NAME = 100
LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100


class Route(IntEnum):
    """Which claim takes a task."""

    ORDINARY = 0
    """Any worker may run it."""
    APART = 1
    """Several workers are to run it, or only named ones may: see `engine.apart`."""


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

    attempt = models.PositiveIntegerField(default=0, db_default=0)
    failures = models.PositiveIntegerField(default=0, db_default=0)
    crashes = models.PositiveIntegerField(default=0, db_default=0)
    max_attempts = models.PositiveIntegerField(default=1)
    max_crashes = models.PositiveIntegerField(default=3)
    crash_delay = models.DurationField()
    deadline_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    lease_duration = models.DurationField(null=True)
    ping_interval = models.DurationField(null=True)
    retention = models.DurationField(null=True)

    unique_key = models.CharField(max_length=255, null=True)
    unique_scope = models.CharField(max_length=255, db_default="", blank=True)
    """Within which the key is unique: the name of the definition, or one that several share."""
    unique_for = models.CharField(max_length=10, default="", db_default="", blank=True)
    unique_until = models.DateTimeField(null=True)
    holds_unique_key = models.BooleanField(default=False, db_default=False)

    route = models.SmallIntegerField(db_default=Route.ORDINARY.value)
    """Which claim takes it, and which index it stands in while it is ready."""
    workers = models.PositiveIntegerField(db_default=1)
    """How many distinct workers must each run it; 0 for a broadcast that waits for its workers."""
    worker_names = models.JSONField(null=True)
    """The only workers that may run it; null: any."""
    pinned_to = models.CharField(max_length=LONGEST_WORKER_NAME, db_default="", blank=True)
    """The worker's name where only one may run it, for the index."""
    broadcast = models.BooleanField(db_default=False)
    open_slots = models.PositiveIntegerField(db_default=1)
    """How many workers may still take it; only kept for tasks of several workers."""
    running_leases = models.PositiveIntegerField(db_default=0)
    successes = models.PositiveIntegerField(db_default=0)

    retry_of = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="retries",
        db_constraint=False,
        db_index=False,
    )
    """The task that was retried with other arguments, and gave rise to this one."""
    schedule = models.ForeignKey(
        "Schedule",
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="tasks",
        db_constraint=False,
        db_index=False,
    )
    """The schedule that created it; its tasks are found by their occurrences."""
    nominal_at = models.DateTimeField(null=True)
    """The time of the schedule's rule that it stands for."""
    attempts_before_retry = models.PositiveIntegerField(db_default=0)
    """Its attempts at the last manual retry: failures and crashes count from there."""

    return_value = models.JSONField(null=True)
    error_class = models.CharField(max_length=255, default="", db_default="", blank=True)
    error_message = models.TextField(default="", db_default="", blank=True)

    enqueued_at = models.DateTimeField(db_default=DatabaseClock())
    ready_at = models.DateTimeField(null=True)
    parked_at = models.DateTimeField(null=True)
    """Since when it has met only workers that do not know its definition."""
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    prune_after = models.DateTimeField(null=True)

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("task")
        verbose_name_plural = _("tasks")
        permissions = [
            ("view_arguments", "Can view arguments that cannot be redacted"),
            ("enqueue", "Can enqueue tasks"),
            ("operate", "Can retry, cancel, reschedule and change tasks"),
            ("stop", "Can stop running tasks and workers"),
            ("purge", "Can delete tasks"),
        ]
        indexes = [
            models.Index(
                F("queue_name"),
                F("priority").desc(),
                F("run_after"),
                F("id"),
                name="taskqueue_task_claim",
                condition=Q(status=TaskStatus.READY.value, route=Route.ORDINARY.value),
            ),
            models.Index(
                F("pinned_to"),
                F("queue_name"),
                F("priority").desc(),
                F("run_after"),
                F("id"),
                name="taskqueue_task_apart",
                condition=Q(
                    status__in=[TaskStatus.READY.value, TaskStatus.RUNNING.value],
                    route=Route.APART.value,
                ),
            ),
            models.Index(
                fields=["retry_of"],
                name="taskqueue_task_retry_of",
                condition=Q(retry_of__isnull=False),
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
            # What has ended, by when: the lists of what succeeded, failed or was cancelled.
            models.Index(
                fields=["status", "finished_at", "id"],
                name="taskqueue_task_ended",
                condition=Q(finished_at__isnull=False),
            ),
            # The lists of what waits for something; an ordinary task never stands here.
            models.Index(
                fields=["status", "id"],
                name="taskqueue_task_waiting",
                condition=Q(
                    status__in=sorted({*WAITING, TaskStatus.BLOCKED.value}),
                ),
            ),
            models.Index(
                fields=["prune_after"],
                name="taskqueue_task_prune",
                condition=Q(prune_after__isnull=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                # The key first: searches know only that.
                fields=["unique_key", "unique_scope"],
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
            models.CheckConstraint(
                condition=Q(workers__gte=F("running_leases") + F("successes")),
                name="taskqueue_task_workers",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"
