"""A REST request with an Idempotency-Key, or a press of a button in the admin, with its answer."""

from __future__ import annotations

from django.db import models

from taskqueue.models.parts import DatabaseClock

LONGEST_KEY = 255


class IdempotencyKey(models.Model):
    """Written in the transaction of the request's changes; the same key gets the same answer."""

    id = models.BigAutoField(primary_key=True)
    # The owner of the key: two people may choose the same key.
    actor = models.CharField(max_length=150)
    key = models.CharField(max_length=LONGEST_KEY)
    # SHA-256 of method, path and body.
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    headers = models.JSONField(default=dict)
    # The JSON text of the answer.
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
