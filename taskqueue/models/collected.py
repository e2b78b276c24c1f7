"""Events that wait to become part of a batch."""

from __future__ import annotations

from django.db import models


class Collected(models.Model):
    """One event of a group; deleted in the transaction that enqueues its batch.

    The row says when its group is due and how the batch is enqueued. So sessions that collect
    events share no row, and workers need no code of the project.
    """

    id = models.BigAutoField(primary_key=True)
    # The name of the definition.
    name = models.CharField(max_length=255)
    group = models.CharField(max_length=200, db_column="group_key")
    # JSON.
    event = models.TextField()
    size = models.IntegerField()
    collected_at = models.DateTimeField()
    max_size = models.IntegerField()
    max_bytes = models.IntegerField()
    # Seconds.
    grace = models.FloatField()
    max_delay = models.FloatField()
    # The spec of the enqueue: see `engine.specs`.
    spec = models.JSONField()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["name", "group", "id"], name="taskqueue_collected_group")]

    def __str__(self) -> str:
        return f"{self.name} {self.group} {self.id}"
