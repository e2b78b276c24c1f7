"""A task: one request to run a definition with given arguments."""

from __future__ import annotations

from enum import IntEnum

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from taskqueue.core.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY
from taskqueue.core.states import FINISHED, PENDING, WAITING, TaskStatus
from taskqueue.core.uuid7 import uuid7
from taskqueue.models.parts import LOOSE, VIEW_ONLY, DatabaseClock, choices, known_status
from taskqueue.models.worker import LONGEST_NAME as LONGEST_WORKER_NAME

LONGEST_NAME = 255
LONGEST_QUEUE_NAME = 100


class Route(IntEnum):
    """The kind of claim that takes a task."""

    # Any worker may run it.
    ORDINARY = 0
    # Several workers must run it, or only named workers may: see `engine.apart`.
    APART = 1
    # It has limits, or needs a worker with certain tags: see `engine.limits`.
    PARTITION = 2


class Task(models.Model):
    """One request to run a definition, with its options at the time of the enqueue."""

    id = models.UUIDField(primary_key=True, default=uuid7)
    name = models.CharField(max_length=LONGEST_NAME)
    queue_name = models.CharField(max_length=LONGEST_QUEUE_NAME, default="default")
    status = models.CharField(max_length=10, choices=choices(TaskStatus), default=TaskStatus.READY)
    priority = models.SmallIntegerField(default=0)
    run_after = models.DateTimeField(db_default=DatabaseClock())
    args = models.JSONField(default=list)
    kwargs = models.JSONField(default=dict)
    options = models.JSONField(default=dict)
    metadata = models.JSONField(default=dict)

    attempt = models.IntegerField(default=0, db_default=0)
    failures = models.IntegerField(default=0, db_default=0)
    crashes = models.IntegerField(default=0, db_default=0)
    max_attempts = models.IntegerField(default=1)
    max_crashes = models.IntegerField(default=3)
    crash_delay = models.DurationField()
    deadline_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    lease_duration = models.DurationField(null=True)
    ping_interval = models.DurationField(null=True)
    retention = models.DurationField(null=True)
    # How many finished tasks of its name are kept.
    keep_last = models.IntegerField(null=True)

    unique_key = models.CharField(max_length=255, null=True)
    # The scope in which the key is unique: the name of the definition, or a shared name.
    unique_scope = models.CharField(max_length=255, db_default="")
    unique_for = models.CharField(max_length=10, default="", db_default="")
    unique_until = models.DateTimeField(null=True)
    holds_unique_key = models.BooleanField(default=False, db_default=False)

    # The claim that takes it, and so the index that contains it while it is ready.
    route = models.SmallIntegerField(db_default=Route.ORDINARY.value)
    # How many distinct workers must each run it; 0 for a broadcast that waits for its workers.
    workers = models.IntegerField(db_default=1)
    # The only workers that may run it; null: any.
    worker_names = models.JSONField(null=True)
    # The name of the worker if only one may run it, for the index.
    pinned_to = models.CharField(max_length=LONGEST_WORKER_NAME, db_default="")
    broadcast = models.BooleanField(db_default=False)
    # How many workers may still take it; only kept for tasks of several workers.
    open_slots = models.IntegerField(db_default=1)
    running_leases = models.IntegerField(db_default=0)
    successes = models.IntegerField(db_default=0)

    # Of a task of a partition: a digest of what limits it, and that itself with what it costs, as
    # `declarations.limits` writes it.
    partition = models.UUIDField(null=True)
    limits = models.JSONField(null=True)

    # The task whose retry with other arguments created this one.
    retry_of = models.ForeignKey(
        "self", models.DO_NOTHING, null=True, related_name="retries", **LOOSE
    )
    # The schedule that created it; its tasks are found by their occurrences.
    schedule = models.ForeignKey(
        "Schedule", models.DO_NOTHING, null=True, related_name="tasks", **LOOSE
    )
    # The time of the schedule's rule for which it was enqueued.
    nominal_at = models.DateTimeField(null=True)
    # The step of a workflow that it belongs to, and which of its members it is. In no index: one
    # would be written with each of a task's versions. A step's tasks are found by `Member`.
    step = models.ForeignKey("Step", models.DO_NOTHING, null=True, related_name="tasks", **LOOSE)
    place = models.IntegerField(null=True)
    # Its attempts at the last manual retry: failures and crashes count from there.
    attempts_before_retry = models.IntegerField(db_default=0)

    return_value = models.JSONField(null=True)
    error_class = models.CharField(max_length=255, default="", db_default="")
    error_message = models.TextField(default="", db_default="")

    enqueued_at = models.DateTimeField(db_default=DatabaseClock())
    ready_at = models.DateTimeField(null=True)
    # The time since which only workers that do not know its definition have claimed it.
    parked_at = models.DateTimeField(null=True)
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
                fields=["queue_name", "-priority", "run_after", "id"],
                name="taskqueue_task_claim",
                condition=Q(status=TaskStatus.READY.value, route=Route.ORDINARY.value),
            ),
            models.Index(
                fields=["pinned_to", "queue_name", "-priority", "run_after", "id"],
                name="taskqueue_task_apart",
                condition=Q(
                    status__in=[TaskStatus.READY.value, TaskStatus.RUNNING.value],
                    route=Route.APART.value,
                ),
            ),
            models.Index(
                fields=["partition", "-priority", "run_after", "id"],
                name="taskqueue_task_partition",
                condition=Q(status=TaskStatus.READY.value, route=Route.PARTITION.value),
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
            # Tasks by the time of their end: the lists of succeeded, failed and cancelled tasks.
            models.Index(
                fields=["status", "finished_at", "id"],
                name="taskqueue_task_ended",
                condition=Q(finished_at__isnull=False),
            ),
            # The kinds of errors that tasks failed with, and when each was first seen.
            models.Index(
                fields=["name", "error_class", "finished_at", "id"],
                name="taskqueue_task_failed",
                condition=Q(status=TaskStatus.FAILED.value),
            ),
            # The lists of waiting tasks; an ordinary task is never in this index.
            models.Index(
                fields=["status", "id"],
                name="taskqueue_task_waiting",
                condition=Q(status__in=sorted({*WAITING, TaskStatus.BLOCKED.value})),
            ),
            models.Index(
                fields=["prune_after"],
                name="taskqueue_task_prune",
                condition=Q(prune_after__isnull=False),
            ),
            # Finished tasks of definitions that keep a number of them; it has no other tasks.
            models.Index(
                fields=["name", "finished_at", "id"],
                name="taskqueue_task_kept",
                condition=Q(keep_last__isnull=False, finished_at__isnull=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                # The key comes first, because searches have only the key.
                fields=["unique_key", "unique_scope"],
                name="taskqueue_task_unique_key",
                condition=Q(holds_unique_key=True),
            ),
            # The server reads each CHECK anew for every statement: these are few, and worded for it
            # in the migration.
            known_status(
                [*sorted(PENDING), TaskStatus.RUNNING],
                sorted(FINISHED),
                name="taskqueue_task_status",
            ),
            models.CheckConstraint(
                condition=Q(priority__range=(LOWEST_PRIORITY, HIGHEST_PRIORITY)),
                name="taskqueue_task_priority",
            ),
            models.CheckConstraint(
                condition=Q(
                    workers__gte=F("running_leases") + F("successes"),
                    running_leases__gte=0,
                    successes__gte=0,
                    open_slots__gte=0,
                ),
                name="taskqueue_task_workers",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"
