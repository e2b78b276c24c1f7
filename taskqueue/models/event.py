"""Events that somebody has subscribed to, the subscriptions, and the position of the feed."""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.db.models import Q

from taskqueue.core.event_kinds import LONGEST_KIND, EventKind
from taskqueue.models.parts import LOOSE, DatabaseClock, ManyOf, choices, one_of
from taskqueue.models.task import LONGEST_NAME, LONGEST_QUEUE_NAME, Task
from taskqueue.models.worker import LONGEST_NAME as LONGEST_WORKER_NAME
from taskqueue.models.workflow import Workflow


class Subscriber(StrEnum):
    """The purpose of a subscription."""

    # A webhook: each event causes a delivery.
    ENDPOINT = "endpoint"
    # A definition under `@on`: each event causes a task of it.
    HANDLER = "handler"
    # A reader of the feed, who renews the subscription meanwhile.
    STREAM = "stream"


class Event(models.Model):
    """A committed change. Triggers of the changed table write it, if anybody wants it.

    Readers follow `seq`, never `id`: the ids of overlapping transactions appear out of order.
    """

    id = models.BigAutoField(primary_key=True)
    # Its number, without gaps, in the order in which events became visible; null until numbered.
    seq = models.BigIntegerField(null=True)
    kind = models.CharField(max_length=LONGEST_KIND, choices=choices(EventKind))
    at = models.DateTimeField(db_default=DatabaseClock())
    task = models.ForeignKey(Task, models.DO_NOTHING, null=True, related_name="events", **LOOSE)
    workflow = models.ForeignKey(
        Workflow, models.DO_NOTHING, null=True, related_name="events", **LOOSE
    )
    # The name of the definition, workflow, schedule or rule; for an operation its verb.
    name = models.CharField(max_length=LONGEST_NAME, db_default="")
    queue_name = models.CharField(max_length=LONGEST_QUEUE_NAME, db_default="")
    worker = models.CharField(max_length=LONGEST_WORKER_NAME, db_default="")
    attempt = models.IntegerField(null=True)
    # Such as the status or the class of an error. Never arguments, results, messages, tracebacks.
    details = models.JSONField(default=dict)

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(
                fields=["id"], name="taskqueue_event_new", condition=Q(seq__isnull=True)
            )
        ]  # fmt: skip
        constraints = [
            # An event enters this index when it is numbered, so that writing it costs less.
            models.UniqueConstraint(
                fields=["seq"], name="taskqueue_event_seq", condition=Q(seq__isnull=False)
            )
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"


class EventBatch(models.Model):
    """Events of one kind that a statement caused for tasks of one definition.

    On PostgreSQL the statements that enqueue, claim and end many tasks write them. Numbering turns
    each into rows of `Event`. A row for each event would be written and indexed twice.
    """

    # From the sequence of the events' ids, so that batches and single events have one order.
    id = models.BigIntegerField(primary_key=True)
    kind = models.CharField(max_length=LONGEST_KIND, choices=choices(EventKind))
    at = models.DateTimeField()
    workflow = models.ForeignKey(
        Workflow, models.DO_NOTHING, null=True, related_name="event_batches", **LOOSE
    )
    name = models.CharField(max_length=LONGEST_NAME)
    queue_name = models.CharField(max_length=LONGEST_QUEUE_NAME)
    worker = models.CharField(max_length=LONGEST_WORKER_NAME)
    # The details that they share.
    details = models.JSONField()
    # How many there are; for each its task, for a start and an end its attempt, and for an end how
    # many seconds it ran.
    number = models.IntegerField()
    task_ids = ManyOf("uuid")
    attempts = ManyOf("integer", null=True)
    seconds = ManyOf("double precision", null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.number} {self.kind}"


class Subscription(models.Model):
    """The events that somebody wants: those that match all of its conditions."""

    id = models.BigAutoField(primary_key=True)
    subscriber = models.CharField(max_length=10, choices=choices(Subscriber))
    # The name of the handler's definition, or the id of the endpoint, rule or stream.
    subject = models.CharField(max_length=LONGEST_NAME)
    # Distinguishes several of the same subject.
    place = models.SmallIntegerField(default=0)
    # Full kinds, never patterns.
    kinds = models.JSONField()
    # Patterns with `*` and `?`; an empty list matches all.
    names = models.JSONField(default=list)
    queues = models.JSONField(default=list)
    task_id = models.UUIDField(null=True)
    workflow_id = models.UUIDField(null=True)
    # When it ends unless it is renewed; null if it stays.
    until = models.DateTimeField(null=True)
    # For a handler: the request that its tasks share, as in a schedule.
    request = models.JSONField(null=True)
    # For a handler: when code last declared it.
    declared_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=DatabaseClock())

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(fields=["task_id"], name="taskqueue_subscription_task"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["subscriber", "subject", "place"], name="taskqueue_subscription_subject"
            ),
            one_of("subscriber", Subscriber, name="taskqueue_subscription_subscriber"),
        ]

    def __str__(self) -> str:
        return f"{self.subscriber} {self.subject}"


class Audience(models.Model):
    """The one row with everything that anybody wants, and the position of the feed.

    The session that numbers events holds its lock. There is no such row before the first
    subscription.
    """

    # Always 1.
    id = models.SmallIntegerField(primary_key=True, default=1)
    # The kinds of all subscriptions, separated by spaces.
    kinds = models.TextField(default="")
    # The last number that was assigned, and the last one that was deleted.
    last_seq = models.BigIntegerField(default=0)
    pruned_seq = models.BigIntegerField(default=0)

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="taskqueue_audience_one"),
        ]

    def __str__(self) -> str:
        return self.kinds
