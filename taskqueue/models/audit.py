"""An audit line: who did what to what by hand, and why."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from taskqueue.models.clock import DatabaseClock
from taskqueue.models.permissions import VIEW_ONLY


class Audit(models.Model):
    """Written in the transaction of the act itself."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=DatabaseClock())
    actor = models.CharField(max_length=150, default="", blank=True)
    noun = models.CharField(max_length=10, default="", blank=True)
    """The kind of what it was done to, such as `task` or `schedule`."""
    verb = models.CharField(max_length=30)
    subject = models.CharField(max_length=255, db_index=True)
    """The id of the task, or the name of what else it was done to."""
    reason = models.CharField(max_length=1000, default="", blank=True)
    before = models.CharField(max_length=10, default="", blank=True)
    """The status that it had."""
    detail = models.CharField(max_length=1000, db_default="", blank=True)
    """The changes, with the new values."""

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")

    def __str__(self) -> str:
        return " ".join(filter(None, (self.verb, self.noun, self.subject)))
