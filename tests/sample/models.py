"""What test tasks leave in the database."""

from __future__ import annotations

from django.db import models


class Effect(models.Model):
    """One attempt's mark, written in the body's own transaction.

    Nothing is unique here: a body that ran twice must show as two rows, not as an error.
    """

    task_id = models.UUIDField()
    attempt = models.IntegerField()
    note = models.TextField(default="")

    def __str__(self) -> str:
        return f"{self.task_id}, attempt {self.attempt}: {self.note}"
