"""A queue: a named lane."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from taskqueue.models.parts import VIEW_ONLY, DatabaseClock
from taskqueue.models.task import LONGEST_QUEUE_NAME


class Queue(models.Model):
    """A queue that some worker has seen tasks of; a queue also works without a row."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=LONGEST_QUEUE_NAME, unique=True)
    created_at = models.DateTimeField(db_default=DatabaseClock())
    # While it is paused, none of its tasks is claimed; running tasks go on.
    paused_at = models.DateTimeField(null=True)
    paused_until = models.DateTimeField(null=True)
    paused_by = models.CharField(max_length=150, db_default="")
    pause_reason = models.CharField(max_length=1000, db_default="")
    # The limiter of its limit. While it has one, the ordinary claim leaves the queue to
    # `engine.limits`.
    limiter_id = models.UUIDField(null=True)

    # Since when it counts as deleted, unless it has got tasks since. The row is kept for some
    # hours, because statistics of the last hour still include it.
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        permissions = [("control_queues", "Can pause and resume queues")]
        indexes = [
            # Every claim asks which queues to leave out.
            models.Index(
                fields=["name"],
                name="taskqueue_queue_left_out",
                condition=Q(paused_at__isnull=False) | Q(limiter_id__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return self.name

    def is_paused_at(self, moment: datetime) -> bool:
        """Return whether none of its tasks is claimed at that moment: a pause may be over."""
        if self.paused_at is None:
            return False
        return self.paused_until is None or self.paused_until > moment
