"""Subscribing, numbering and reading with short names."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.db import connection

from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.events.numbering import PLAIN_BATCH, pump
from taskqueue.engine.events.subscribing import subscribe
from taskqueue.models import Event, EventBatch
from taskqueue.models.event import Subscriber


def listen(*kinds: str, **conditions: Any) -> int:
    """Subscribe as a stream does, until the test ends; the number from which on it holds."""
    wanted = EventFilter.of(kinds, **conditions)
    return subscribe(connection, Subscriber.STREAM, str(uuid4()), wanted, seconds=3600)


def written() -> list[Event]:
    """All events, in the order in which they were written."""
    return list(Event.objects.order_by("id"))


def numbered() -> list[Event]:
    """All events, each with its number, in their order."""
    number_all()
    return list(Event.objects.order_by("seq"))


def kinds() -> list[str]:
    """The kinds of all events, in the order in which they were written."""
    return [event.kind for event in written()]


def are_numbered() -> bool:
    """Whether no event waits for its number."""
    return not (Event.objects.filter(seq=None).exists() or EventBatch.objects.exists())


def number_all() -> int:
    """Number all events that are visible; how many there were."""
    total = 0
    while number := pump(connection).number:
        assert number <= PLAIN_BATCH
        total += number
    return total
