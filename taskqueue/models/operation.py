"""An operation: one verb done to many tasks, in the background."""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from taskqueue.core.uuid7 import uuid7
from taskqueue.models.clock import DatabaseClock
from taskqueue.models.permissions import VIEW_ONLY


class OperationStatus(StrEnum):
    """Where an operation stands."""

    WAITING = "waiting"
    """No worker has begun it."""
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    """It came upon an error that it cannot get past; what was done stays done."""
    CANCELLED = "cancelled"
    """Somebody ended it; what was done stays done."""


class Operation(models.Model):
    """Done in chunks by any worker, each in one transaction with its progress here.

    Who takes over from a worker that died goes on behind the last chunk that was committed.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    verb = models.CharField(max_length=30)
    query = models.TextField(default="", blank=True)
    """The search, as it was typed; empty where tasks were chosen one by one."""
    chosen = models.JSONField(default=dict)
    """Which tasks: a `TaskFilter` as JSON, and how far the walk over them has come."""
    arguments = models.JSONField(default=dict)
    """What the verb is given besides."""
    status = models.CharField(
        max_length=10,
        choices=[(status.value, status.value) for status in OperationStatus],
        default=OperationStatus.WAITING.value,
    )
    expected = models.PositiveBigIntegerField(null=True)
    """How many tasks fitted when it was asked for; null: more than were counted."""
    matched = models.PositiveBigIntegerField(default=0)
    """How many it has come to so far."""
    done = models.PositiveBigIntegerField(default=0)
    """To how many of them it was done."""
    next_after = models.UUIDField(null=True)
    """The id of the last task of the last chunk."""
    last_id = models.UUIDField(null=True)
    """The newest task at its beginning; what is enqueued later is left out."""
    requested_by = models.CharField(max_length=150, default="", blank=True)
    reason = models.CharField(max_length=1000, default="", blank=True)
    error = models.TextField(default="", blank=True)
    created_at = models.DateTimeField(db_default=DatabaseClock())
    started_at = models.DateTimeField(null=True)
    progressed_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("operation")
        verbose_name_plural = _("operations")
        indexes = [
            models.Index(
                fields=["id"],
                name="taskqueue_operation_open",
                condition=Q(finished_at__isnull=True),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=[status.value for status in OperationStatus]),
                name="taskqueue_operation_status",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verb} ({self.id})"
