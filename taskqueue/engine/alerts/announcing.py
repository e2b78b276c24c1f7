"""Write the events of alerts, and the deliveries to endpoints that a rule names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.alerts import IncidentStatus
from taskqueue.core.event_kinds import EventKind
from taskqueue.declarations.event_filters import fits
from taskqueue.engine.events.writing import write_events
from taskqueue.engine.webhooks.deliveries import insert_deliveries
from taskqueue.engine.webhooks.messages import message_of
from taskqueue.models import AlertRule, Endpoint, Event, Incident, Subscription
from taskqueue.models.event import Subscriber

# The details of an event may have 2 KiB, and a character takes up to twelve bytes of JSON.
LONGEST_SUBJECT = 150
RAISED, CLEARED = "raised", "cleared"
# The event for each kind of news. Reminders and further cases are no events.
TOLD = {RAISED: (RAISED,), CLEARED: (CLEARED,), "passed": (RAISED, CLEARED)}
KINDS = {RAISED: EventKind.ALERT_RAISED.value, CLEARED: EventKind.ALERT_CLEARED.value}


def announce(
    connection: BaseDatabaseWrapper, rule: AlertRule, incidents: Sequence[Incident]
) -> None:
    """Write the events of incidents that were raised or cleared, each once.

    They are written in the transaction of the change, even if the rule is silenced and nobody is
    told: an event records what happened.
    """
    events, changed = [], []
    for incident in incidents:
        if due := _due(incident):
            events += [Event(**_columns(rule, incident, what)) for what in due]
            incident.announced = due[-1]
            changed.append(incident)
    if changed:
        Incident.objects.using(connection.alias).bulk_update(changed, ["announced"])
        write_events(connection, events)


def tell_endpoints(
    connection: BaseDatabaseWrapper, rule: AlertRule, news: Sequence[tuple[Incident, str]]
) -> bool:
    """Insert deliveries of news about incidents. Return whether there are any.

    They go to the endpoints that the rule names, except those that subscribe to its events and so
    receive the events themselves.
    """
    ids = [int(id) for id in rule.channels.get("endpoints", ())]
    if not ids:
        return False
    alias = connection.alias
    enabled = Endpoint.objects.using(alias).filter(id__in=ids, is_enabled=True).order_by("id")
    subscriptions = Subscription.objects.using(alias).filter(
        subscriber=Subscriber.ENDPOINT, subject__in=[str(id) for id in ids]
    )
    own = {row.subject: row for row in subscriptions}
    events = [
        Event(**_columns(rule, incident, each), at=_moment(incident, each))
        for incident, what in news
        for each in TOLD.get(what, ())
    ]
    messages = [
        (endpoint.pk, message_of(event))
        for endpoint in enabled
        for event in events
        if endpoint.name not in own or not fits(event, own[endpoint.name])
    ]
    return bool(insert_deliveries(connection, messages))


def _due(incident: Incident) -> tuple[str, ...]:
    if incident.status == IncidentStatus.FIRING:
        return () if incident.announced else (RAISED,)
    if incident.status != IncidentStatus.ENDED or incident.announced == CLEARED:
        return ()
    return (CLEARED,) if incident.announced else (RAISED, CLEARED)


def _columns(rule: AlertRule, incident: Incident, what: str) -> dict[str, Any]:
    """Return the columns of an event: the alert, the kind of its rule and its subject."""
    details = {
        "alert": incident.id,
        "kind": rule.kind,
        "subject": incident.subject[:LONGEST_SUBJECT],
        "value": incident.value,
        "count": incident.count,
    }
    about = {"kind": KINDS[what], "name": rule.name, "details": details}
    return {**about, "queue_name": "", "worker": ""}


def _moment(incident: Incident, what: str) -> Any:
    return incident.raised_at if what == RAISED else incident.ended_at
