"""An arrival: tasks that one statement enqueued."""

from __future__ import annotations

from django.db import models

from taskqueue.models.task import LONGEST_NAME, LONGEST_QUEUE_NAME


class Arrival(models.Model):
    """Written by the statement that enqueues, so that it is as true as the tasks are.

    Nobody waits for another, as they would for a number that all raise. A duty of the workers adds
    the rows to the totals and deletes them. On PostgreSQL the table has no index, for nobody looks
    for a row of it: that spares an enqueue half of what counting costs it, and `id` is always 0.
    """

    id = models.BigAutoField(primary_key=True)
    queue_name = models.CharField(max_length=LONGEST_QUEUE_NAME)
    name = models.CharField(max_length=LONGEST_NAME)
    number = models.PositiveIntegerField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.number} of {self.name} on {self.queue_name}"
