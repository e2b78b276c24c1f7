"""Counts of work: arrivals, totals, rollups of spans of time, and depths."""

from __future__ import annotations

from uuid import uuid4

from django.db import models
from django.db.models import Q

from taskqueue.models.parts import VIEW_ONLY, DatabaseClock, Figures
from taskqueue.models.task import LONGEST_NAME, LONGEST_QUEUE_NAME


class Rollup(Figures):
    """Counts and durations of one queue and name, from `starts_at` on.

    They are written in the transaction that records the attempts, so they agree with these. Each
    process writes its own rows, which are merged into one a minute, later a quarter of an hour,
    later an hour. Each attempt is in exactly one row.
    """

    id = models.UUIDField(primary_key=True, default=uuid4)
    # Seconds that a merged row covers; 0 for a few seconds of one process, not merged yet.
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


KINDS = (QUEUE, NAME) = ("queue", "name")


class Total(Figures):
    """The figures of one queue or one name, without those that have not been added yet.

    Rollups are added in the transaction that merges them into minutes, arrivals in the one that
    deletes them: a count is always in exactly one place.
    """

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=5, choices=[(kind, kind) for kind in KINDS])
    # The queue or the name; those beyond the first ones share one row.
    label = models.CharField(max_length=LONGEST_NAME)
    # Tasks that were created.
    enqueued = models.PositiveBigIntegerField(default=0)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["kind", "label"], name="taskqueue_total_label")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.label}"


class Arrival(models.Model):
    """Written by the statement that enqueues, so that counts agree with the tasks.

    No enqueue waits for another, as it would for a shared counter. A duty of the workers adds the
    rows to the totals and deletes them. On PostgreSQL the table has no index, because no row is
    looked up: this saves half of the cost of counting, and `id` is always 0.
    """

    id = models.BigAutoField(primary_key=True)
    queue_name = models.CharField(max_length=LONGEST_QUEUE_NAME)
    name = models.CharField(max_length=LONGEST_NAME)
    number = models.IntegerField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.number} of {self.name} on {self.queue_name}"


class Depth(models.Model):
    """How many tasks of a queue were ready at a moment; in merged rows, the most within a span.

    Workers count once a minute. A queue without waiting tasks has no row then: a row without a
    queue name, with the sum of all queues, shows that somebody counted.
    """

    id = models.BigAutoField(primary_key=True)
    # Seconds that the row covers.
    resolution = models.PositiveIntegerField()
    starts_at = models.DateTimeField()
    queue_name = models.CharField(max_length=LONGEST_QUEUE_NAME)
    waiting = models.PositiveIntegerField()
    # Whether there may have been more.
    is_capped = models.BooleanField(db_default=False)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["resolution", "starts_at", "queue_name"], name="taskqueue_depth_moment"
            )
        ]

    def __str__(self) -> str:
        return f"{self.waiting} on {self.queue_name} from {self.starts_at}"
