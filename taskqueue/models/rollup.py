"""A rollup: what attempts came to in one span of time, counted where they were recorded."""

from __future__ import annotations

from uuid import uuid4

from django.db import models
from django.db.models import Q

from taskqueue.models.parts import VIEW_ONLY, DatabaseClock, Figures
from taskqueue.models.task import LONGEST_NAME, LONGEST_QUEUE_NAME


class Rollup(Figures):
    """Counts and durations of one queue and name, from `starts_at` on.

    Written in the transaction that records the attempts, so that it is as true as they are; a
    process writes rows of its own, which are merged into one a minute, later a quarter of an
    hour, later an hour. No row stands for the same attempts as another.
    """

    id = models.UUIDField(primary_key=True, default=uuid4)
    # Seconds that a merged row stands for; 0: a few seconds of one process, not merged yet.
    resolution = models.PositiveIntegerField(default=0)
    starts_at = models.DateTimeField(db_default=DatabaseClock())
    queue_name = models.CharField(max_length=LONGEST_QUEUE_NAME)
    name = models.CharField(max_length=LONGEST_NAME)

    slowest_seconds = models.FloatField(default=0.0)
    slowest_task_id = models.UUIDField(null=True)

    class Meta:
        default_permissions = VIEW_ONLY
        indexes = [
            models.Index(fields=["starts_at"], name="taskqueue_rollup_starts"),
            models.Index(fields=["resolution", "starts_at"], name="taskqueue_rollup_merge"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["resolution", "starts_at", "queue_name", "name"],
                name="taskqueue_rollup_span",
                condition=Q(resolution__gt=0),
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} on {self.queue_name} from {self.starts_at}"
