"""A pause of a definition, or of everything; a queue's pause is in the queue's row."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils.translation import gettext_lazy as _

from taskqueue.models.task import LONGEST_NAME

# The name for everything, which no definition can have.
EVERYTHING = ""


class Pause(models.Model):
    """A row exists only while the pause lasts, because every claim reads this table."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    paused_at = models.DateTimeField()
    paused_until = models.DateTimeField(null=True)
    paused_by = models.CharField(max_length=150, default="")
    pause_reason = models.CharField(max_length=1000, default="")

    class Meta:
        default_permissions = ()
        verbose_name = _("pause")
        verbose_name_plural = _("pauses")

    def __str__(self) -> str:
        return self.name or "everything"

    def is_paused_at(self, moment: datetime) -> bool:
        """Return whether it lasts at that moment; the row of a past pause is deleted soon."""
        return self.paused_until is None or self.paused_until > moment
