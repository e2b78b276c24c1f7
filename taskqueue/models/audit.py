"""An audit entry: who did what to which subject by hand, and why."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from taskqueue.models.parts import VIEW_ONLY, DatabaseClock


class Audit(models.Model):
    """Written in the transaction of the action."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=DatabaseClock())
    actor = models.CharField(max_length=150, default="")
    # The kind of its subject, such as `task` or `schedule`.
    noun = models.CharField(max_length=10, default="")
    verb = models.CharField(max_length=30)
    # The id of the task, or the name of another subject.
    subject = models.CharField(max_length=255, db_index=True)
    reason = models.CharField(max_length=1000, default="")
    # The status before the action.
    before = models.CharField(max_length=10, default="")
    # The changes, with the new values.
    detail = models.CharField(max_length=1000, db_default="")

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")

    def __str__(self) -> str:
        return " ".join(filter(None, (self.verb, self.noun, self.subject)))
