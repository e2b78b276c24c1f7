"""The subscription of an endpoint: the events that cause deliveries to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.refusals import why
from taskqueue.declarations.event_filters import EventFilter, fits
from taskqueue.engine.events import subscribing
from taskqueue.exceptions import InvalidSubscription, InvalidWebhook
from taskqueue.models import Endpoint, Event
from taskqueue.models.event import Subscriber

# The fields of an endpoint, by what a filter calls them.
FIELDS: dict[object, str] = {"kinds": "kinds", "name": "names", "queue": "queues"}


def wanted_of(values: Mapping[str, Any]) -> EventFilter:
    """Return the filter for the given fields of an endpoint. Raises `InvalidWebhook`."""
    try:
        return EventFilter.of(
            values.get("kinds", ()), name=values.get("names", ()), queue=values.get("queues", ())
        )
    except InvalidSubscription as error:
        field = FIELDS[error.path[0]]
        raise InvalidWebhook(why(error), path=(field,)) from None


def subscribe(connection: BaseDatabaseWrapper, row: Endpoint) -> None:
    """Make the feed contain the events that an endpoint wants, from the next second on."""
    subscribing.subscribe(connection, Subscriber.ENDPOINT, row.name, wanted_of(vars(row)))


def unsubscribe(connection: BaseDatabaseWrapper, row: Endpoint) -> None:
    """Stop adding events to the feed for an endpoint."""
    subscribing.unsubscribe(connection, Subscriber.ENDPOINT, row.name)


def wants(row: Endpoint, event: Event) -> bool:
    """Return whether an endpoint wants an event."""
    return fits(event, wanted_of(vars(row)))
