"""What attempts came to, as numbers: the columns of what counts them."""

from __future__ import annotations

from django.db import models


class Figures(models.Model):
    """Counts of attempts and of tasks, and how long attempts ran and waited."""

    succeeded = models.PositiveBigIntegerField(default=0)
    """Attempts, by the status of their lease; so do the next four."""
    failed = models.PositiveBigIntegerField(default=0)
    lost = models.PositiveBigIntegerField(default=0)
    stopped = models.PositiveBigIntegerField(default=0)
    returned = models.PositiveBigIntegerField(default=0)
    tasks_succeeded = models.PositiveBigIntegerField(default=0)
    """Tasks that came to their end, by its status; so do the next two."""
    tasks_failed = models.PositiveBigIntegerField(default=0)
    tasks_cancelled = models.PositiveBigIntegerField(default=0)

    run_seconds = models.FloatField(default=0.0)
    """Sum of the run times of the attempts that are counted in `run_times`."""
    run_times = models.JSONField(default=dict)
    """Histogram: attempts by bucket, see `taskqueue.core.histogram`."""
    wait_seconds = models.FloatField(default=0.0)
    wait_times = models.JSONField(default=dict)
    """The same of the time between being ready and the start of the body."""

    class Meta:
        abstract = True
