"""A total: what was counted since the beginning, and is never deleted."""

from __future__ import annotations

from django.db import models

from taskqueue.models.parts import Figures
from taskqueue.models.task import LONGEST_NAME

KINDS = (QUEUE, NAME) = ("queue", "name")


class Total(Figures):
    """The figures of one queue, or of one name, but for what has not been added yet.

    Rollups are added in the transaction that merges them into minutes, arrivals in the one that
    deletes them: what is in neither is here, and nothing is in both.
    """

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=5, choices=[(kind, kind) for kind in KINDS])
    # The queue or the name; all behind the first so many share one row.
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
