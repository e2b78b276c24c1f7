"""An operation: one verb on many tasks, in the background."""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from taskqueue.core.uuid7 import uuid7
from taskqueue.models.parts import VIEW_ONLY, DatabaseClock, choices, one_of


class OperationStatus(StrEnum):
    """Where an operation stands."""

    # No worker has begun it.
    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    # It met an error that it cannot get past; completed changes are kept.
    FAILED = "failed"
    # Somebody ended it; completed changes are kept.
    CANCELLED = "cancelled"


class Operation(models.Model):
    """Run in chunks by any worker, each in one transaction with its progress here.

    A worker that takes over from one that died continues after the last committed chunk.
    """

    id = models.UUIDField(primary_key=True, default=uuid7)
    verb = models.CharField(max_length=30)
    # The search, as it was typed; empty if tasks were chosen one by one.
    query = models.TextField(default="")
    # The tasks: a `TaskFilter` as JSON, and the position of the walk over them.
    chosen = models.JSONField(default=dict)
    # The arguments of the verb.
    arguments = models.JSONField(default=dict)
    status = models.CharField(
        max_length=10, choices=choices(OperationStatus), default=OperationStatus.WAITING
    )
    # How many tasks matched when it was requested; null if there were more than were counted.
    expected = models.PositiveBigIntegerField(null=True)
    # How many it has processed so far.
    matched = models.PositiveBigIntegerField(default=0)
    # How many of them were changed.
    done = models.PositiveBigIntegerField(default=0)
    # The id of the last task of the last chunk.
    next_after = models.UUIDField(null=True)
    # The newest task at its start; tasks that are enqueued later are left out.
    last_id = models.UUIDField(null=True)
    requested_by = models.CharField(max_length=150, default="")
    # The identity of that user, as others may have the same name. Empty if a name was given.
    requester = models.CharField(max_length=150, default="")
    reason = models.CharField(max_length=1000, default="")
    error = models.TextField(default="")
    created_at = models.DateTimeField(db_default=DatabaseClock())
    # Until then nothing is done, so that it can be undone; null if it begins at once.
    starts_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    progressed_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # Whether the caller has just started it, and not found it.
    is_new = False

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("operation")
        verbose_name_plural = _("operations")
        indexes = [
            models.Index(
                fields=["id"],
                name="taskqueue_operation_open",
                condition=Q(finished_at__isnull=True),
            )
        ]
        constraints = [one_of("status", OperationStatus, name="taskqueue_operation_status")]

    def __str__(self) -> str:
        return f"{self.verb} ({self.id})"
