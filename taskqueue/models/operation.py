"""An operation: one verb done to many tasks, in the background."""

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
    # It came upon an error that it cannot get past; what was done stays done.
    FAILED = "failed"
    # Somebody ended it; what was done stays done.
    CANCELLED = "cancelled"


class Operation(models.Model):
    """Done in chunks by any worker, each in one transaction with its progress here.

    Who takes over from a worker that died goes on behind the last chunk that was committed.
    """

    id = models.UUIDField(primary_key=True, default=uuid7)
    verb = models.CharField(max_length=30)
    # The search, as it was typed; empty where tasks were chosen one by one.
    query = models.TextField(default="")
    # Which tasks: a `TaskFilter` as JSON, and how far the walk over them has come.
    chosen = models.JSONField(default=dict)
    # What the verb is given besides.
    arguments = models.JSONField(default=dict)
    status = models.CharField(
        max_length=10, choices=choices(OperationStatus), default=OperationStatus.WAITING
    )
    # How many tasks fitted when it was asked for; null: more than were counted.
    expected = models.PositiveBigIntegerField(null=True)
    # How many it has come to so far.
    matched = models.PositiveBigIntegerField(default=0)
    # To how many of them it was done.
    done = models.PositiveBigIntegerField(default=0)
    # The id of the last task of the last chunk.
    next_after = models.UUIDField(null=True)
    # The newest task at its beginning; what is enqueued later is left out.
    last_id = models.UUIDField(null=True)
    requested_by = models.CharField(max_length=150, default="")
    # The identity of that user: others may have the same name. Empty where a name was given.
    requester = models.CharField(max_length=150, default="")
    reason = models.CharField(max_length=1000, default="")
    error = models.TextField(default="")
    created_at = models.DateTimeField(db_default=DatabaseClock())
    # Until then nothing is done, so that it can be undone; null: it begins at once.
    starts_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    progressed_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # Whether the caller has just started it, rather than found it.
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
