"""The subscription of a rule that names webhook endpoints, to the events of its own alerts."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.events.subscribing import subscribe, unsubscribe
from taskqueue.models import AlertRule, Subscription
from taskqueue.models.event import Subscriber


def subscribe_rule(connection: BaseDatabaseWrapper, rule_id: int) -> None:
    """Subscribe a rule that is looked at and names endpoints; end its subscription otherwise."""
    rule = AlertRule.objects.using(connection.alias).filter(id=rule_id).first()
    subject = str(rule_id)
    if rule is not None and rule.next_at is not None and rule.channels.get("endpoints"):
        subscribe(connection, Subscriber.RULE, subject, EventFilter.of("alert.*"))
        return
    known = Subscription.objects.using(connection.alias)
    if known.filter(subscriber=Subscriber.RULE, subject=subject).exists():
        unsubscribe(connection, Subscriber.RULE, subject)
