"""Webhooks: endpoints that receive events, and the deliveries to each."""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from taskqueue.core.uuid7 import uuid7
from taskqueue.core.webhook_targets import LONGEST_URL
from taskqueue.models.parts import LOOSE, DatabaseClock, choices, one_of

LONGEST_DESCRIPTION = 255
LONGEST_ANSWER = 1024


class Include(StrEnum):
    """An addition to the thin body of a message."""

    # The class and the message of the error.
    ERROR = "error"


class DisabledFor(StrEnum):
    """Why an endpoint is disabled."""

    # It is enabled.
    NOTHING = ""
    PERSON = "person"
    # It answered 410.
    GONE = "gone"
    # It failed for days.
    FAILING = "failing"


class DeliveryStatus(StrEnum):
    """The status of a delivery."""

    # It is to be sent, for the first time or again.
    WAITING = "waiting"
    DELIVERED = "delivered"
    # It was tried as often as it may be.
    FAILED = "failed"
    # Its endpoint was disabled or deleted before.
    CANCELLED = "cancelled"


class Endpoint(models.Model):
    """A URL that is told of events. Its secrets are shown once, by the verb that makes them."""

    id = models.BigAutoField(primary_key=True)
    # May hold a token in its path or its query: only who may manage webhooks sees it.
    url = models.CharField(max_length=LONGEST_URL)
    description = models.CharField(max_length=LONGEST_DESCRIPTION, default="")
    # Patterns of kinds of events, and of names and queues of tasks; empty: all.
    kinds = models.JSONField(default=list)
    names = models.JSONField(default=list)
    queues = models.JSONField(default=list)
    include = models.JSONField(default=list)
    secret = models.CharField(max_length=100)
    # The one before the last rotation signs too, until then.
    previous_secret = models.CharField(max_length=100, default="")
    previous_until = models.DateTimeField(null=True)
    is_enabled = models.BooleanField(default=True)
    disabled_for = models.CharField(max_length=10, choices=choices(DisabledFor), default="")
    # Since when no delivery has succeeded.
    failing_since = models.DateTimeField(null=True)
    succeeded_at = models.DateTimeField(null=True)
    created_by = models.CharField(max_length=150, default="")
    created_at = models.DateTimeField(db_default=DatabaseClock())
    changed_at = models.DateTimeField(db_default=DatabaseClock())

    class Meta:
        default_permissions = ()
        permissions = [("manage_webhooks", "Can view and manage webhooks")]
        verbose_name = _("webhook endpoint")
        verbose_name_plural = _("webhook endpoints")
        constraints = [one_of("disabled_for", DisabledFor, name="taskqueue_endpoint_disabled")]

    def __str__(self) -> str:
        return str(self.pk)

    @property
    def name(self) -> str:
        """Its id as text: the audit must not tell its URL."""
        return str(self.pk)


class Delivery(models.Model):
    """An event for an endpoint: what is sent, and what became of it.

    Inserted in the transaction that numbers the event, with the task that sends it.
    """

    # Sent as `webhook-id`: the same in every attempt and redelivery.
    id = models.UUIDField(primary_key=True, default=uuid7)
    endpoint = models.ForeignKey(Endpoint, models.DO_NOTHING, related_name="deliveries", **LOOSE)
    # The number of the event; null: a test, or what an alert rule tells its endpoints.
    seq = models.BigIntegerField(null=True)
    kind = models.CharField(max_length=40)
    # The body, but for what `include` adds when it is sent.
    payload = models.JSONField(default=dict)
    # The task that sends it, or sent it last.
    task = models.ForeignKey("Task", models.DO_NOTHING, related_name="deliveries", **LOOSE)
    status = models.CharField(
        max_length=10, choices=choices(DeliveryStatus), default=DeliveryStatus.WAITING
    )
    # Since it was enqueued, or redelivered last.
    attempts = models.IntegerField(db_default=0)
    # Of the last attempt: the status, or why there was no answer; milliseconds; the answer.
    answer_status = models.IntegerField(null=True)
    error = models.CharField(max_length=255, db_default="")
    milliseconds = models.IntegerField(null=True)
    answer = models.TextField(db_default="")
    attempted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=DatabaseClock())

    class Meta:
        default_permissions = ()
        verbose_name = _("webhook delivery")
        verbose_name_plural = _("webhook deliveries")
        indexes = [
            models.Index(fields=["endpoint", "id"], name="taskqueue_delivery_endpoint"),
            models.Index(
                fields=["endpoint", "id"],
                name="taskqueue_delivery_waiting",
                condition=Q(status=DeliveryStatus.WAITING.value),
            ),
            # Counted by the metrics.
            models.Index(
                fields=["endpoint", "id"],
                name="taskqueue_delivery_failed",
                condition=Q(status=DeliveryStatus.FAILED.value),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "seq"],
                name="taskqueue_delivery_event",
                condition=Q(seq__isnull=False),
            ),
            one_of("status", DeliveryStatus, name="taskqueue_delivery_status"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} ({self.pk})"
