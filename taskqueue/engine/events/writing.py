"""Writing events that no trigger writes, such as those of alerts."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.declarations.event_filters import fits
from taskqueue.models import Event, Subscription


def write_events(connection: BaseDatabaseWrapper, events: Sequence[Event]) -> None:
    """Write the events that a subscription wants, in the caller's transaction.

    Their details are words and numbers: never arguments, results, messages or tracebacks.
    """
    if not events:
        return
    subscriptions = list(Subscription.objects.using(connection.alias))
    wanted = [event for event in events if any(fits(event, row) for row in subscriptions)]
    Event.objects.using(connection.alias).bulk_create(wanted)
