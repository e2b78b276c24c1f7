"""Limits: how many tasks may run at once or start within a time, and partitions of waiting tasks.

A task that is limited, or that only workers with certain tags may run, belongs to a partition: all
tasks with the same queue, limiters, tenant, sequence and tags. `engine.limits` claims them.
"""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from taskqueue.models.lease import Lease
from taskqueue.models.parts import LOOSE, VIEW_ONLY, DatabaseClock, choices, one_of
from taskqueue.models.task import LONGEST_NAME, LONGEST_QUEUE_NAME

LONGEST_KEY = 255


class Per(StrEnum):
    """The unit for which a limit is counted."""

    # Each value of its key; without a key, all tasks that name the limit.
    KEY = "key"
    HOST = "host"
    WORKER = "worker"
    QUEUE = "queue"


class PartitionState(StrEnum):
    """Whether claims look at a partition."""

    OPEN = "open"
    # It waits for a place, a token, or the end of the claimed task of its sequence.
    WAITING = "waiting"
    # None of its tasks is ready.
    EMPTY = "empty"
    # A task of its sequence failed, and somebody must decide.
    HALTED = "halted"


class CountOfLimits(StrEnum):
    """A kind of count."""

    # Partitions that stood still, and were opened.
    REPAIRED = "repaired"
    # Seconds in which tasks waited for a place of a limit.
    SATURATED = "saturated"


class Limit(models.Model):
    """A limit by name, declared by code or set by people for a queue."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    per = models.CharField(max_length=10, choices=choices(Per), default=Per.KEY)
    # How many tasks run at once, and how many tokens each window of `seconds` has; null for no
    # limit.
    concurrency = models.IntegerField(null=True)
    rate = models.IntegerField(null=True)
    seconds = models.FloatField(null=True)
    # Whether starts are spaced evenly.
    smooth = models.BooleanField(db_default=False)
    # The numbers that people set instead of the declared ones.
    concurrency_override = models.IntegerField(null=True)
    rate_override = models.IntegerField(null=True)
    seconds_override = models.FloatField(null=True)
    changed_at = models.DateTimeField(db_default=DatabaseClock())

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("limit")
        verbose_name_plural = _("limits")
        constraints = [one_of("per", Per, name="taskqueue_limit_per")]

    def __str__(self) -> str:
        return self.name


class Limiter(models.Model):
    """One key, host or worker of a limit. A session that claims under it holds this row's lock."""

    # A digest of the limit's name and the key.
    id = models.UUIDField(primary_key=True)
    limit = models.ForeignKey(Limit, models.DO_NOTHING, related_name="limiters", **LOOSE)
    key = models.CharField(max_length=LONGEST_KEY, db_default="")
    # The recent starts, in the stored form of `core.rates`; null for none.
    starts = models.JSONField(null=True)
    used_at = models.DateTimeField(db_default=DatabaseClock())

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["limit", "id"], name="taskqueue_limiter_limit")]

    def __str__(self) -> str:
        return f"{self.limit_id}/{self.key}"


class Slot(models.Model):
    """A place of a limiter that a lease takes. It counts only while that lease is running."""

    pk = models.CompositePrimaryKey("limiter_id", "lease_id")
    limiter = models.ForeignKey(Limiter, models.DO_NOTHING, related_name="slots", **LOOSE)
    lease = models.ForeignKey(Lease, models.DO_NOTHING, related_name="slots", **LOOSE)

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["lease"], name="taskqueue_slot_lease")]

    def __str__(self) -> str:
        return f"{self.lease_id} in {self.limiter_id}"


class Partition(models.Model):
    """Tasks that one claim takes in order, under the same limiters."""

    # A digest of what its tasks have in common, so that an enqueue looks nothing up.
    id = models.UUIDField(primary_key=True)
    queue_name = models.CharField(max_length=LONGEST_QUEUE_NAME)
    # What a worker needs to serve it, as text; partitions of fair tenants have lanes of their own.
    lane = models.TextField(db_default="")
    # What its tasks have in common, as `declarations.limits` writes it; null for the ordinary tasks
    # of a limited queue.
    limits = models.JSONField(null=True)
    # The ids of its limiters, except those of the host or worker that serves it.
    limiters = models.JSONField(default=list)
    state = models.CharField(
        max_length=10, choices=choices(PartitionState), default=PartitionState.EMPTY
    )
    # The priority of its first task, which decides which partition goes first.
    head_priority = models.SmallIntegerField(default=0)
    head_at = models.DateTimeField(null=True)
    # The time of its first task in seconds, or the virtual time of a fair tenant.
    rank = models.FloatField(default=0.0)
    # The limiter that is full, and when a token comes.
    waits_for = models.UUIDField(null=True)
    opens_at = models.DateTimeField(null=True)
    # The task of its sequence that was claimed last.
    holder = models.UUIDField(null=True)
    # When one of its tasks was last claimed, or it last became empty or nonempty.
    changed_at = models.DateTimeField(db_default=DatabaseClock())

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(
                fields=["queue_name", "lane", "-head_priority", "rank", "id"],
                name="taskqueue_partition_open",
                condition=Q(state=PartitionState.OPEN.value),
            ),
            models.Index(
                fields=["waits_for", "queue_name", "lane", "-head_priority", "rank", "id"],
                name="taskqueue_partition_waiting",
                condition=Q(waits_for__isnull=False),
            ),
            models.Index(
                fields=["opens_at"],
                name="taskqueue_partition_opens",
                condition=Q(opens_at__isnull=False),
            ),
            models.Index(
                fields=["id"],
                name="taskqueue_partition_halted",
                condition=Q(state=PartitionState.HALTED.value),
            ),
        ]
        constraints = [one_of("state", PartitionState, name="taskqueue_partition_state")]

    def __str__(self) -> str:
        return str(self.id)


class LimitPlan(models.Model):
    """The limits of a definition when its waiting tasks were last placed, by `engine.limits`.

    If the code of a starting worker has other limits, the tasks are placed anew.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    plan = models.JSONField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.name


class LimitCount(models.Model):
    """A total that sweeps count for metrics: few rows, which only sweeps write."""

    id = models.BigAutoField(primary_key=True)
    what = models.CharField(max_length=10, choices=choices(CountOfLimits))
    # The limit; empty for the total.
    name = models.CharField(max_length=LONGEST_NAME, db_default="")
    number = models.FloatField(default=0.0)
    counted_at = models.DateTimeField(db_default=DatabaseClock())

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["what", "name"], name="taskqueue_limitcount_name")
        ]

    def __str__(self) -> str:
        return f"{self.what} {self.name}"


class LimitNote(models.Model):
    """Says that a partition has got a ready task, or a limiter a free place.

    Triggers of the tables of tasks and leases write it, in the transaction that causes it.
    """

    id = models.BigAutoField(primary_key=True)
    # The id of the partition or of the limiter.
    subject = models.UUIDField()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["subject"], name="taskqueue_limitnote_subject")]

    def __str__(self) -> str:
        return str(self.subject)
