"""Deliveries to the webhook endpoints that an alert rule names, of the events of its own alerts."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.declarations.event_filters import fits
from taskqueue.engine.webhooks.deliveries import insert_deliveries
from taskqueue.engine.webhooks.messages import message_of
from taskqueue.models import AlertRule, Endpoint, Event, Subscription
from taskqueue.models.event import Subscriber


def deliver_for_rule(
    connection: BaseDatabaseWrapper, subscription: Subscription, events: Sequence[Event]
) -> None:
    """Insert deliveries of a rule's events, but to endpoints that subscribe to them themselves."""
    alias = connection.alias
    rule = AlertRule.objects.using(alias).filter(id=int(subscription.subject)).first()
    own = [] if rule is None else [event for event in events if event.name == rule.name]
    if rule is None or not own:
        return
    ids = [int(id) for id in rule.channels.get("endpoints", ())]
    enabled = Endpoint.objects.using(alias).filter(id__in=ids, is_enabled=True).order_by("id")
    subscribed = list(
        Subscription.objects.using(alias).filter(
            subscriber=Subscriber.ENDPOINT, subject__in=[str(id) for id in ids]
        )
    )
    insert_deliveries(
        connection,
        [
            (endpoint.pk, message_of(event))
            for endpoint in enabled
            for event in own
            if not any(row.subject == str(endpoint.pk) and fits(event, row) for row in subscribed)
        ],
    )
