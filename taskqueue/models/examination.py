"""The findings of the doctor that workers keep for the notices and alerts."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Examination(models.Model):
    """The one row with the latest findings; there is none before the first examination."""

    # Always 1.
    id = models.SmallIntegerField(primary_key=True, default=1)
    # When somebody last asked for an examination.
    requested_at = models.DateTimeField(null=True)
    # When a worker last began one, and when one was last completed.
    begun_at = models.DateTimeField(null=True)
    examined_at = models.DateTimeField(null=True)
    # The worker that completed it, and its host.
    worker_name = models.CharField(max_length=255, default="")
    host = models.CharField(max_length=255, default="")
    # What `engine.examinations.Note` describes, the worst first.
    findings = models.JSONField(default=list)

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="taskqueue_examination_one"),
        ]

    def __str__(self) -> str:
        return f"{self.examined_at}"
