"""Announcing raised and cleared alerts to handlers, webhooks and readers of events."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.event_kinds import EventKind
from taskqueue.engine.events.writing import write_event
from taskqueue.models import AlertRule, Incident

LONGEST_SUBJECT = 200
# By what is told; a reminder, or a further case, is no event.
KINDS = {
    "raised": (EventKind.ALERT_RAISED,),
    "cleared": (EventKind.ALERT_CLEARED,),
    "passed": (EventKind.ALERT_RAISED, EventKind.ALERT_CLEARED),
}


def announce(
    connection: BaseDatabaseWrapper, rule: AlertRule, incident: Incident, what: str
) -> bool:
    """Write the events of what is told of an incident, in the caller's transaction.

    They name the alert, the kind of its rule and its subject; whether anybody subscribes to them.
    """
    details = {
        "alert": incident.id,
        "kind": rule.kind,
        "subject": incident.subject[:LONGEST_SUBJECT],
        "value": incident.value,
        "count": incident.count,
    }
    written = [
        write_event(connection, kind, name=rule.name, details=details)
        for kind in KINDS.get(what, ())
    ]
    return any(written)
