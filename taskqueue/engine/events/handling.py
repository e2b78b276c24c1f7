"""The tasks of handlers: definitions under `@on`, one task for each matching event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.uuid7 import uuid7_hexes
from taskqueue.declarations.payload import encode
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.events.reading import as_json, feed_event
from taskqueue.engine.payloads import Payload
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.models import Event, Subscription
from taskqueue.models.event import Subscriber

# The most bytes of the JSON of an event.
LARGEST = 16 * 1024


def enqueue_handlers(
    connection: BaseDatabaseWrapper, subscription: Subscription, events: Sequence[Event]
) -> None:
    """Enqueue a task for each event; its argument is the event. Raises ValueError."""
    spec = EnqueueSpec.from_json((subscription.request or {})["spec"])
    payloads = []
    for event, id in zip(events, uuid7_hexes(len(events)), strict=True):
        args = encode([as_json(feed_event(event))], limit=LARGEST, what="event")
        payloads.append(Payload(id, args, "{}", None, spec.place(args, "{}")))
    dialect = dialect_for(connection)
    if not spec.is_apart:
        dialect.insert_many(connection, spec, payloads)
        return
    for payload in payloads:
        dialect.insert(connection, spec, payload)


def handled_names(subscriptions: Sequence[Subscription]) -> set[str]:
    """Return the names of all handlers. Events of their own tasks have no effects."""
    return {
        subscription.subject
        for subscription in subscriptions
        if subscription.subscriber == Subscriber.HANDLER
    }


def stored(spec: EnqueueSpec) -> dict[str, Any]:
    """Return the request that a handler's subscription stores to enqueue its tasks."""
    return {"spec": spec.as_json()}
