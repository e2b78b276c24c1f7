"""Subscriptions, and the row that holds all wanted kinds of events.

Locks: the row of the audience, then subscriptions. The numbering of events waits for that row, so
these transactions are short.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q, QuerySet
from django.db.transaction import atomic

from taskqueue.core.event_kinds import ALL_KINDS
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import TooManyReaders
from taskqueue.models import Audience, Subscription
from taskqueue.models.event import Subscriber

# How long a reader's subscription lasts if it is not renewed.
READING_SECONDS = 60.0
# The most readers with different filters. Each change that may be an event is compared with all of
# them.
MOST_READERS = 200


def subscribe(
    connection: BaseDatabaseWrapper,
    subscriber: Subscriber,
    subject: str,
    wanted: EventFilter,
    *,
    place: int = 0,
    seconds: float | None = None,
    further: Mapping[str, Any] | None = None,
) -> int:
    """Write or replace a subscription. Return the number after which its events come.

    It ends after `seconds` unless it is renewed. `further` are values of other columns. It takes
    effect at once for callers, and within two seconds for workers.
    """
    with atomic(using=connection.alias):
        audience = _locked(connection)
        until = None
        if seconds is not None:
            until = dialect_for(connection).now(connection) + timedelta(seconds=seconds)
        _rows(connection).update_or_create(
            subscriber=subscriber,
            subject=subject,
            place=place,
            defaults={**wanted.columns, "until": until, **(further or {})},
        )
        _count(connection, audience)
        return audience.last_seq


def keep_reading(connection: BaseDatabaseWrapper, wanted: EventFilter) -> int:
    """Have the events that a reader wants written until a minute from now. Return the last number.

    All readers with the same filter share one subscription. It is renewed only when less than half
    of its time is left, so that reading seldom writes. Raises `TooManyReaders`.
    """
    subject = hashlib.sha256(repr(wanted).encode()).hexdigest()[:32]
    now = dialect_for(connection).now(connection)
    rows = _rows(connection).filter(subscriber=Subscriber.STREAM, subject=subject)
    until = rows.values_list("until", flat=True).first()
    if until is not None and until > now:
        if until < now + timedelta(seconds=READING_SECONDS / 2):
            rows.update(until=now + timedelta(seconds=READING_SECONDS))
        return last_seq(connection)
    with atomic(using=connection.alias):
        _locked(connection)  # Before the readers are counted, so that the bound holds.
        _require_room(connection)
        return subscribe(connection, Subscriber.STREAM, subject, wanted, seconds=READING_SECONDS)


def unsubscribe(connection: BaseDatabaseWrapper, subscriber: Subscriber, *subjects: str) -> int:
    """End all subscriptions of these subjects. Return how many there were."""
    return _delete(connection, Q(subscriber=subscriber, subject__in=subjects))


def end_overdue(connection: BaseDatabaseWrapper) -> int:
    """End subscriptions that were not renewed. Return how many there were."""
    overdue = Q(until__lte=dialect_for(connection).now(connection))
    return _delete(connection, overdue) if _rows(connection).filter(overdue).exists() else 0


def last_seq(connection: BaseDatabaseWrapper) -> int:
    """Return the number of the last numbered event; 0 if there is none."""
    row = Audience.objects.using(connection.alias).values_list("last_seq", flat=True).first()
    return row or 0


def recount(connection: BaseDatabaseWrapper) -> None:
    """Determine anew which events anybody wants, after other code changed subscriptions."""
    with atomic(using=connection.alias):
        _count(connection, _locked(connection))


def _require_room(connection: BaseDatabaseWrapper) -> None:
    readers = _rows(connection).filter(subscriber=Subscriber.STREAM)
    # Without a worker, nothing else ends overdue subscriptions.
    if readers.count() < MOST_READERS or end_overdue(connection):
        return
    raise TooManyReaders(
        f"{MOST_READERS} readers with different filters follow events, and no more may at once. "
        "Use a filter that others use, such as one of kinds alone, or try again in a minute."
    )


def _delete(connection: BaseDatabaseWrapper, which: Q) -> int:
    with atomic(using=connection.alias):
        audience = _locked(connection)
        number, _ = _rows(connection).filter(which).delete()
        if number:
            _count(connection, audience)
        return number


def _locked(connection: BaseDatabaseWrapper) -> Audience:
    """Create the row of the audience if necessary, and lock it."""
    take_write_lock(connection)
    rows = Audience.objects.using(connection.alias)
    audience = rows.select_for_update().first()
    if audience is None:
        rows.bulk_create([Audience()], ignore_conflicts=True)
        audience = rows.select_for_update().get()
    return audience


def _count(connection: BaseDatabaseWrapper, audience: Audience) -> None:
    wanted: set[str] = set()
    for kinds in _rows(connection).values_list("kinds", flat=True):
        wanted.update(kinds)
    kinds = " ".join(kind for kind in ALL_KINDS if kind in wanted)
    if kinds != audience.kinds:
        Audience.objects.using(connection.alias).update(kinds=kinds)


def _rows(connection: BaseDatabaseWrapper) -> QuerySet[Subscription]:
    return Subscription.objects.using(connection.alias)
