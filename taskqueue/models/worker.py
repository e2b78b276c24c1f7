"""A worker: a running `runworker`."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from uuid import uuid4

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from taskqueue.models.parts import VIEW_ONLY, choices

LONGEST_NAME = 150


class WorkerStatus(StrEnum):
    """A worker's own report; it is alive while `seen_at` is younger than its lease."""

    RUNNING = "running"
    QUIET = "quiet"
    STOPPING = "stopping"
    STOPPED = "stopped"
    LOST = "lost"


class WorkerRequest(StrEnum):
    """A request to a worker."""

    # Claim nothing more, finish what runs, and stay. To resume takes it back.
    QUIET = "quiet"
    # End as at SIGTERM: finish within the shutdown timeout, return the rest.
    STOP = "stop"
    # End at once, and return what runs.
    KILL = "kill"


class Worker(models.Model):
    """Known by its name: a restart under the same name is the same worker."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    incarnation = models.UUIDField(default=uuid4)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    status = models.CharField(
        max_length=10, choices=choices(WorkerStatus), default=WorkerStatus.RUNNING
    )
    queues = models.JSONField(default=dict)
    # What it has that not every worker has, such as "gpu": sorted words.
    tags = models.JSONField(default=list)
    # The most of its slots that a queue, or a definition, may have, by name.
    queue_slots = models.JSONField(default=dict)
    definition_slots = models.JSONField(default=dict)
    # Its queues in their order, which an object in JSON does not keep, and whether it empties them
    # in that order.
    queue_order = models.JSONField(default=list)
    is_strict = models.BooleanField(default=False)
    concurrency = models.PositiveIntegerField(default=1)
    pool = models.CharField(max_length=10, default="process")
    versions = models.JSONField(default=dict)
    lease_seconds = models.FloatField(default=30.0)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True)
    running_leases = models.PositiveIntegerField(default=0)
    # What it and its children hold in memory; null where the host does not tell.
    memory_bytes = models.PositiveBigIntegerField(null=True)
    # The processor time that they use, of one processor, between the last two signs of life; null
    # where the host does not tell, or at first.
    cpu_percent = models.FloatField(null=True)
    # Whether it sleeps with a free slot and listens, so that an enqueue must wake it.
    is_idle = models.BooleanField(default=False)
    # Whether enqueues wake it; false: it polls. Null until it knows, and on SQLite: all poll.
    listens = models.BooleanField(null=True)
    # What keeps it from working, such as children that do not start; empty when healthy.
    trouble = models.TextField(default="")
    # The names of the schedules that its code declares; null as long as that is not known.
    schedules = models.JSONField(null=True)

    request = models.CharField(max_length=10, choices=choices(WorkerRequest), default="")
    requested_at = models.DateTimeField(null=True)
    requested_by = models.CharField(max_length=150, default="")
    request_reason = models.CharField(max_length=1000, default="")
    request_seen_at = models.DateTimeField(null=True)

    # What people have changed since it started, by the names of `change_worker`; the columns above
    # are what it does. It has taken up the latest change where `wanted_seen_at` is not null.
    wanted = models.JSONField(default=dict)
    wanted_at = models.DateTimeField(null=True)
    wanted_by = models.CharField(max_length=150, default="")
    wanted_reason = models.CharField(max_length=1000, default="")
    wanted_seen_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        indexes = [
            models.Index(fields=["id"], name="taskqueue_worker_idle", condition=Q(is_idle=True))
        ]

    def __str__(self) -> str:
        return self.name

    def is_silent(self, now: datetime) -> bool:
        """Whether it has given no sign of life for longer than its lease: it counts as lost."""
        return self.seen_at + timedelta(seconds=self.lease_seconds) < now
