"""Check that events get their numbers; until then, no subscriber receives them."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.models import Audience, Event, EventBatch, Subscription
from taskqueue.monitoring.counts import CAP, Count
from taskqueue.monitoring.doctor.finding import Check, Finding
from taskqueue.monitoring.doctor.words import gettext as _
from taskqueue.monitoring.doctor.words import short_duration
from taskqueue.monitoring.reading import now

EVENTS = Check("events")
# Seconds after which an event without a number is late: workers look every second or two.
LATE = 60.0


def look_at_events(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield that nobody numbers events; nothing if nobody has ever subscribed."""
    audience = Audience.objects.using(connection.alias).first()
    if audience is None:
        return
    new = Event.objects.using(connection.alias).filter(seq=None).order_by("id")
    batches = EventBatch.objects.using(connection.alias).order_by("id")
    firsts = [rows.values_list("at", flat=True).first() for rows in (new, batches)]
    late = max((now() - at).total_seconds() if at else 0.0 for at in firsts)
    if late > LATE:
        number = len(new.values_list("id", flat=True)[: CAP + 1])
        number += sum(batches.values_list("number", flat=True)[: CAP + 1])
        yield EVENTS.problem(
            seen=_(
                "No worker numbers events. Those that wait: {number}, the oldest for {age}. "
                "Handlers, webhooks and readers do not hear of them."
            ).format(number=Count.of(number, cap=CAP), age=short_duration(late)),
            remedy=_("Start a worker: manage.py runworker. If one is running, read its log."),
        )
        return
    subscriptions = Subscription.objects.using(connection.alias).count()
    yield EVENTS.ok(
        _(
            "Events are numbered; the last one is number {last}. Subscriptions: {subscriptions}."
        ).format(last=f"{audience.last_seq:,}", subscriptions=f"{subscriptions:,}")
    )
