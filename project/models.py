"""The findings of the demo's tasks."""

from __future__ import annotations

from django.db import models


class SourceFile(models.Model):
    """One file that a task has read."""

    path = models.CharField(max_length=1000, unique=True, help_text="Relative to the root walked.")
    kind = models.CharField(max_length=20, help_text="The ending of the name, such as .py.")
    lines = models.PositiveIntegerField()
    words = models.PositiveIntegerField()
    imports = models.PositiveIntegerField(default=0, help_text="Import statements.")
    classes = models.PositiveIntegerField(default=0)
    functions = models.PositiveIntegerField(default=0)
    modules = models.JSONField(default=list, help_text="The modules imported, one a statement.")
    scanned_at = models.DateTimeField()

    class Meta:
        ordering = ("path",)

    def __str__(self) -> str:
        return self.path
