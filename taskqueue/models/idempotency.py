"""A request with an Idempotency-Key, or a press of an admin button, and its response."""

from __future__ import annotations

from django.db import models

from taskqueue.models.parts import DatabaseClock

LONGEST_KEY = 255


class IdempotencyKey(models.Model):
    """Written in the transaction of what the request did: the same key again is told the same."""

    id = models.BigAutoField(primary_key=True)
    # Whose key it is: two people may choose the same.
    actor = models.CharField(max_length=150)
    key = models.CharField(max_length=LONGEST_KEY)
    # SHA-256 of method, path and body.
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    headers = models.JSONField(default=dict)
    # JSON in the wording that was answered.
    body = models.TextField(default="")
    created_at = models.DateTimeField(db_default=DatabaseClock())

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["created_at"], name="taskqueue_idempotency_old")]
        constraints = [
            models.UniqueConstraint(fields=["actor", "key"], name="taskqueue_idempotency_unique")
        ]

    def __str__(self) -> str:
        return f"{self.key} of {self.actor}"
