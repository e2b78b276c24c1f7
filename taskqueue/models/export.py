"""A place for an export; there are as many rows as exports that may run at a time."""

from __future__ import annotations

from django.db import models


class Export(models.Model):
    """A place that an export takes while it is sent.

    A place whose `expires_at` has passed is free: its process would have renewed it, so it has
    died. Rows work across processes and behind a connection pooler, where session locks do not.
    """

    number = models.PositiveSmallIntegerField(primary_key=True)
    # The export that has taken it.
    token = models.UUIDField(null=True)
    actor = models.CharField(max_length=150, default="")
    process = models.CharField(max_length=255, default="")
    expires_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"export {self.number}"
