"""The effects of events: tasks of handlers, deliveries, and those of other subscribers.

They are written in the transaction that numbers the events, by code of this package only: patterns
and calls are data, so the worker that numbers events needs none of the project's code.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.log_text import one_line
from taskqueue.declarations.event_filters import fits
from taskqueue.engine.events.handling import enqueue_handlers, handled_names
from taskqueue.engine.webhooks.deliveries import deliver_events
from taskqueue.models import Event, Subscription
from taskqueue.models.event import Subscriber

logger = logging.getLogger("taskqueue.engine")

# Definitions of this package, such as deliveries. Events of their tasks have no effects: an event
# of a delivery would cause the next delivery, forever.
INTERNAL = "taskqueue."


Effect = Callable[[BaseDatabaseWrapper, Subscription, Sequence[Event]], None]

# The effect of a subscription of each kind, called with the matching events in their order. It runs
# in a savepoint, and may enqueue tasks and write rows. Other kinds have no effect.
EFFECTS: Mapping[Subscriber, Effect] = {
    Subscriber.HANDLER: enqueue_handlers,
    Subscriber.ENDPOINT: deliver_events,
}


def bring_about(
    connection: BaseDatabaseWrapper,
    events: Sequence[Event],
    subscriptions: Sequence[Subscription],
) -> None:
    """Apply the effects that these subscriptions ask for.

    If the effect of an event fails, it is logged and the event is skipped for that subscription: it
    must not hold back other events or subscriptions. Raises the database's error if the database is
    in trouble.
    """
    own = handled_names(subscriptions)
    telling = [event for event in events if not causes_nothing(event, own)]
    for subscription in subscriptions:
        effect = EFFECTS.get(Subscriber(subscription.subscriber))
        fitting = [event for event in telling if fits(event, subscription)]
        if effect is None or not fitting:
            continue
        failed = _hand_on(connection, effect, subscription, fitting)
        if failed:
            event, error = failed[0]
            logger.error(
                "Events not handed on subscriber=%s subject=%s events=%s first_seq=%s error=%s",
                subscription.subscriber, one_line(subscription.subject), len(failed), event.seq,
                one_line(error),
            )  # fmt: skip


def causes_nothing(event: Event, handlers: set[str]) -> bool:
    """Return whether an event is about a task of this package or of a handler."""
    is_of_task = event.kind.startswith("task.")
    return is_of_task and (event.name in handlers or event.name.startswith(INTERNAL))


def _hand_on(
    connection: BaseDatabaseWrapper,
    effect: Effect,
    subscription: Subscription,
    events: Sequence[Event],
) -> list[tuple[Event, Exception]]:
    """Apply the effect to all events; return those for which it fails, with the errors.

    A failing list is halved until single events are left.
    """
    try:
        with atomic(using=connection.alias):
            effect(connection, subscription, events)
        return []
    except (OperationalError, InterfaceError):
        raise
    except (DatabaseError, ValueError, LookupError, TypeError) as error:
        if len(events) == 1:
            return [(events[0], error)]
    half = len(events) // 2
    return [
        failure
        for part in (events[:half], events[half:])
        for failure in _hand_on(connection, effect, subscription, part)
    ]
