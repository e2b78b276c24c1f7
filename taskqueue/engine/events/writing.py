"""Writing events that no trigger writes, such as those of alerts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.event_kinds import EventKind
from taskqueue.declarations.event_filters import fits
from taskqueue.models import Event, Subscription


def write_event(
    connection: BaseDatabaseWrapper,
    kind: EventKind,
    *,
    name: str = "",
    queue_name: str = "",
    worker: str = "",
    details: Mapping[str, Any] | None = None,
) -> bool:
    """Write an event in the caller's transaction, if any subscription wants it; whether one does.

    Details are words and numbers: never arguments, results, messages or tracebacks.
    """
    event = Event(
        kind=kind.value,
        name=name,
        queue_name=queue_name,
        worker=worker,
        details=dict(details or {}),
    )
    if not any(fits(event, row) for row in Subscription.objects.using(connection.alias)):
        return False
    event.save(using=connection.alias, force_insert=True)
    return True
