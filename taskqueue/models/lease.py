"""A lease: one worker's hold on a task for one attempt, later its history, with what it wrote."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from taskqueue.core.states import LeaseStatus
from taskqueue.models.parts import LOOSE, VIEW_ONLY, choices, known_status
from taskqueue.models.task import Task
from taskqueue.models.worker import Worker


class Lease(models.Model):
    """The fence: a worker's writes count only while its lease is `running`.

    `expires_at` is in no index, so that a ping is a heap-only update.
    """

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, models.CASCADE, related_name="leases", **LOOSE)
    worker = models.ForeignKey(
        Worker, models.DO_NOTHING, to_field="name", related_name="leases", **LOOSE
    )
    attempt = models.IntegerField()
    status = models.CharField(
        max_length=10, choices=choices(LeaseStatus), default=LeaseStatus.RUNNING
    )
    claimed_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    # Whether its task is for several workers.
    is_shared = models.BooleanField(db_default=False)
    # Whether it takes places of limiters.
    is_limited = models.BooleanField(db_default=False)
    # What the body returned; only stored for tasks of several workers.
    return_value = models.JSONField(null=True)
    # When its worker may take the task again; until then other workers go first.
    retry_at = models.DateTimeField(null=True)

    stop_requested_at = models.DateTimeField(null=True)
    stop_requested_by = models.CharField(max_length=150, default="", db_default="")
    stop_reason = models.CharField(max_length=1000, default="", db_default="")
    stop_seen_at = models.DateTimeField(null=True)

    # The percentage that the body last reported; 100 if it reported any and succeeded.
    progress = models.FloatField(null=True)
    progress_message = models.CharField(max_length=1000, default="", db_default="")
    progress_detail = models.JSONField(null=True)
    progressed_at = models.DateTimeField(null=True)
    # What the body stored for later attempts, and when.
    checkpoint = models.JSONField(null=True)
    checkpointed_at = models.DateTimeField(null=True)
    # When it was found to run far longer than similar attempts, without a sign of progress.
    wedged_at = models.DateTimeField(null=True)
    error_class = models.CharField(max_length=255, default="", db_default="")
    error_message = models.TextField(default="", db_default="")
    traceback = models.TextField(default="", db_default="")

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("lease")
        verbose_name_plural = _("leases")
        indexes = [
            models.Index(
                fields=["worker"],
                name="taskqueue_lease_running",
                condition=Q(status=LeaseStatus.RUNNING.value),
            ),
            # Unsuccessful attempts, newest last; an attempt that succeeds is never in this index.
            models.Index(
                fields=["status", "id"],
                name="taskqueue_lease_unsuccessful",
                condition=Q(
                    status__in=[
                        LeaseStatus.FAILED.value,
                        LeaseStatus.LOST.value,
                        LeaseStatus.RETURNED.value,
                        LeaseStatus.STOPPED.value,
                    ]
                ),
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["task", "attempt"], name="taskqueue_lease_attempt"),
            models.UniqueConstraint(
                fields=["task", "worker"],
                name="taskqueue_lease_worker",
                condition=Q(
                    status__in=[LeaseStatus.RUNNING.value, LeaseStatus.SUCCEEDED.value],
                    is_shared=True,
                ),
            ),
            known_status(
                [LeaseStatus.RUNNING],
                [status for status in LeaseStatus if status != LeaseStatus.RUNNING],
                name="taskqueue_lease_status",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.attempt} of {self.task_id} by {self.worker_id}"


class TaskLog(models.Model):
    """One captured line of one attempt."""

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, models.CASCADE, related_name="logs", **LOOSE)
    attempt = models.PositiveIntegerField()
    logged_at = models.DateTimeField()
    level = models.PositiveSmallIntegerField()
    logger = models.CharField(max_length=255, default="")
    message = models.TextField()

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("log line")
        verbose_name_plural = _("log lines")
        # Without this index, for a task with many lines, the planner would rather read all existing
        # lines in id order than sort those of the task.
        indexes = [models.Index(fields=["task", "id"], name="taskqueue_tasklog_task")]

    def __str__(self) -> str:
        return self.message


class ResultPart(models.Model):
    """A part of its result that a body wrote while it ran."""

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, models.CASCADE, related_name="parts", **LOOSE)
    attempt = models.PositiveIntegerField()
    # From 0, in the order in which they were written.
    place = models.PositiveIntegerField()
    value = models.JSONField()
    # The bytes, as JSON, of the attempt's parts up to this one.
    size_so_far = models.PositiveIntegerField()
    written_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["task", "attempt", "place"], name="taskqueue_resultpart_place"
            ),
        ]

    def __str__(self) -> str:
        return f"part {self.place} of attempt {self.attempt} of {self.task_id}"
