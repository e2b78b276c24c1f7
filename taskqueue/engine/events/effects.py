"""The effects of events: tasks of handlers, and what other kinds of subscribers ask for.

All of it is written in the transaction that numbers the events, by code of this package alone:
patterns and calls are data, so that whoever numbers events needs no code of the project.
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

# Definitions of this package itself, such as deliveries. What becomes of their tasks causes
# nothing: an event of a delivery would cause the next one, for ever.
INTERNAL = "taskqueue."


Effect = Callable[[BaseDatabaseWrapper, Subscription, Sequence[Event]], None]

# What is done for a subscription of each kind, with the events that fit it, in their order. It runs
# in a savepoint, and may enqueue tasks and write rows. A kind that is not here causes nothing.
EFFECTS: Mapping[Subscriber, Effect] = {
    Subscriber.HANDLER: enqueue_handlers,
    Subscriber.ENDPOINT: deliver_events,
}


def bring_about(
    connection: BaseDatabaseWrapper,
    events: Sequence[Event],
    subscriptions: Sequence[Subscription],
) -> None:
    """Bring about what the events cause by these subscriptions.

    A subscription whose effect fails loses it, and is logged: it must not keep back all others.
    Raises what the database raises when it is in trouble.
    """
    own = handled_names(subscriptions)
    telling = [event for event in events if event.name not in own and not is_internal(event)]
    for subscription in subscriptions:
        effect = EFFECTS.get(Subscriber(subscription.subscriber))
        fitting = [event for event in telling if fits(event, subscription)]
        if effect is None or not fitting:
            continue
        try:
            with atomic(using=connection.alias):
                effect(connection, subscription, fitting)
        except (OperationalError, InterfaceError):
            raise
        except (DatabaseError, ValueError, LookupError, TypeError) as error:
            logger.error(
                "Events not handed on subscriber=%s subject=%s events=%s error=%s",
                subscription.subscriber, one_line(subscription.subject), len(fitting),
                one_line(error),
            )  # fmt: skip


def is_internal(event: Event) -> bool:
    """Whether an event is that of a task of this package itself."""
    return event.kind.startswith("task.") and event.name.startswith(INTERNAL)
