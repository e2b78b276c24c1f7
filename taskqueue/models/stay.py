"""Tasks whose next attempt must be on the worker of the last one."""

from __future__ import annotations

from django.db import models

from taskqueue.models.worker import LONGEST_NAME


class Stay(models.Model):
    """A task that is pinned to the worker of its last attempt, while that worker takes tasks.

    It is a separate table, so that tasks whose worker is gone are found without reading other
    tasks.
    """

    task_id = models.UUIDField(primary_key=True)
    worker_name = models.CharField(max_length=LONGEST_NAME)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.task_id} on {self.worker_name}"
