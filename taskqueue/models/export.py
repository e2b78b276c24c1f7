"""A place for an export: there are as many rows as exports may run at a time."""

from __future__ import annotations

from django.db import models


class Export(models.Model):
    """One of the places that an export takes while it is sent.

    A place whose `expires_at` has passed is free: the process that had it renews it meanwhile, or
    has died. Rows hold across processes and behind a connection pooler, where no lock of a session
    does.
    """

    number = models.PositiveSmallIntegerField(primary_key=True)
    # Which export has taken it.
    token = models.UUIDField(null=True)
    actor = models.CharField(max_length=150, default="")
    process = models.CharField(max_length=255, default="")
    expires_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"export {self.number}"
