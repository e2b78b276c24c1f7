"""The feed of events, its effects, and what was read of it, as plain values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

DELIVER = "taskqueue.webhooks.deliver"


class FeedRow(NamedTuple):
    """An event; `text` is all that it holds."""

    id: int
    seq: int | None
    kind: str
    at: float
    task_id: str
    name: str
    queue_name: str
    attempt: int | None
    text: str


class SubscriptionRow(NamedTuple):
    """A subscription that causes something."""

    subscriber: str
    subject: str
    kinds: list[str]
    names: list[str]


class HandledRow(NamedTuple):
    """A task of a handler, and the number of its event."""

    task_id: str
    name: str
    seq: int
    text: str


class DeliveryRow(NamedTuple):
    """A delivery, and how many tasks there are to send it."""

    id: str
    endpoint: str
    seq: int
    tasks: int
    text: str


class ReadRow(NamedTuple):
    """An event as a reader of the feed got it."""

    seq: int
    kind: str
    task_id: str


class Heard(NamedTuple):
    """What a run knows of its subscriptions, and what came to its reader and receiver."""

    since: float
    """From then on all events are wanted, and all workers know it."""
    canaries: tuple[str, ...] = ()
    """What stands in arguments and results, and in no event."""
    read: tuple[ReadRow, ...] = ()
    """In the order of reading, from the first event on."""
    told: tuple[str, ...] = ()
    """What the receiver of webhooks got."""


class Feed(NamedTuple):
    """All of it."""

    since: float | None = None
    """None: there are no subscriptions, and nothing is asked."""
    canaries: tuple[str, ...] = ()
    read: tuple[ReadRow, ...] = ()
    told: tuple[str, ...] = ()
    events: tuple[FeedRow, ...] = ()
    subscriptions: tuple[SubscriptionRow, ...] = ()
    handled: tuple[HandledRow, ...] = ()
    deliveries: tuple[DeliveryRow, ...] = ()


NO_FEED = Feed()


def read_feed(heard: Heard | None) -> Feed:
    """Read the feed, if anybody has subscribed."""
    if heard is None:
        return NO_FEED
    subscriptions = tuple(_subscriptions())
    return Feed(
        **heard._asdict(),
        events=tuple(_events()),
        subscriptions=subscriptions,
        handled=tuple(_handled({row.subject for row in subscriptions})),
        deliveries=tuple(_deliveries()),
    )


def load_feed(stored: list[Any]) -> Feed:
    """Make it again of what JSON has left of it."""
    feed = Feed._make(stored)
    rows: dict[str, Any] = {
        "read": ReadRow, "events": FeedRow, "subscriptions": SubscriptionRow,
        "handled": HandledRow, "deliveries": DeliveryRow,
    }  # fmt: skip
    made = {name: tuple(kind(*row) for row in getattr(feed, name)) for name, kind in rows.items()}
    return feed._replace(canaries=tuple(feed.canaries), told=tuple(feed.told), **made)


def _events() -> Iterator[FeedRow]:
    from taskqueue.models import Event

    for row in Event.objects.order_by("id").iterator():
        text = json.dumps([row.kind, row.name, row.queue_name, row.worker, row.details])
        yield FeedRow(
            row.id, row.seq, row.kind, row.at.timestamp(), str(row.task_id or ""), row.name,
            row.queue_name, row.attempt, text,
        )  # fmt: skip


def _subscriptions() -> Iterator[SubscriptionRow]:
    from taskqueue.models import Subscription

    rows = Subscription.objects.filter(subscriber__in=("handler", "endpoint")).order_by("id")
    for row in rows:
        yield SubscriptionRow(row.subscriber, row.subject, row.kinds, row.names)


def _handled(names: set[str]) -> Iterator[HandledRow]:
    from taskqueue.models import Task

    rows = Task.objects.filter(name__in=names).order_by("id")
    for id, name, args in rows.values_list("id", "name", "args").iterator():
        yield HandledRow(str(id), name, int(args[0]["seq"]), json.dumps(args))


def _deliveries() -> Iterator[DeliveryRow]:
    from taskqueue.models import Delivery, Task

    calls = Task.objects.filter(name=DELIVER).values_list("kwargs", flat=True)
    tasks = Counter(str(kwargs["delivery"]) for kwargs in calls.iterator())
    for row in Delivery.objects.order_by("id").iterator():
        if row.seq is not None:
            text = json.dumps([row.kind, row.payload, row.error, row.answer])
            id = str(row.id)
            yield DeliveryRow(id, str(row.endpoint_id), row.seq, tasks[id], text)
