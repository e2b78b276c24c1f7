"""Reading the feed: events behind a number, in their order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q

from taskqueue.declarations.event_filters import EventFilter
from taskqueue.exceptions import EventsGone
from taskqueue.models import Audience, Event

# Events of one answer.
MOST = 1000


@dataclass(frozen=True, kw_only=True)
class Page:
    """Events, and the number behind which the next ones come."""

    events: Sequence[Event]
    next_seq: int
    # Whether there may be more already.
    has_more: bool


def read(
    connection: BaseDatabaseWrapper, wanted: EventFilter, *, after: int, limit: int = MOST
) -> Page:
    """Return the first events behind that number which fit.

    Raises `EventsGone` where some of them were deleted: they were kept for too long.
    """
    audience = Audience.objects.using(connection.alias).first() or Audience()
    if after < audience.pruned_seq:
        raise EventsGone(
            f"The events behind number {after} are no longer kept: the oldest one is number "
            f"{audience.pruned_seq + 1}. Read on from there; what was deleted is lost to the feed.",
            oldest=audience.pruned_seq + 1,
        )
    # Only up to what had its number before the rows are read: so `next_seq` passes over none.
    rows = Event.objects.using(connection.alias).filter(
        _query(wanted), seq__gt=after, seq__lte=audience.last_seq
    )
    events = list(rows.order_by("seq")[:limit])
    has_more = len(events) == limit
    last = events[-1].seq if has_more else max(after, audience.last_seq)
    return Page(events=events, next_seq=last or after, has_more=has_more)


def as_json(event: Event) -> dict[str, Any]:
    """An event as JSON: what handlers get, and what the API and the command line show."""
    return {
        "seq": event.seq,
        "kind": event.kind,
        "at": _moment(event.at),
        "task": _id(event.task_id),
        "workflow": _id(event.workflow_id),
        "name": event.name,
        "queue": event.queue_name,
        "worker": event.worker,
        "attempt": event.attempt,
        "details": event.details,
    }


def _moment(at: datetime) -> str:
    return at.isoformat()


def _id(value: UUID | None) -> str | None:
    return None if value is None else str(value)


def _query(wanted: EventFilter) -> Q:
    condition = Q(kind__in=wanted.kinds)
    if wanted.task_id is not None:
        condition &= Q(task_id=wanted.task_id)
    if wanted.workflow_id is not None:
        condition &= Q(workflow_id=wanted.workflow_id)
    return condition & _any_of("name", wanted.names) & _any_of("queue_name", wanted.queues)


def _any_of(column: str, patterns: Sequence[str]) -> Q:
    wanted = Q()
    exact = [pattern for pattern in patterns if not {"*", "?"} & set(pattern)]
    if exact:
        wanted |= Q((f"{column}__in", exact))
    for pattern in patterns:
        if pattern not in exact:
            text = "".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in pattern)
            wanted |= Q((f"{column}__regex", f"^{text}$"))
    return wanted
