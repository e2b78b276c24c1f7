"""Send messages about incidents: at most one per rule and channel in five minutes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.alerts import GATHERED, KINDS, REPEAT, AlertKind, IncidentStatus
from taskqueue.declarations.own_tasks import MAIL
from taskqueue.engine.alerts.announcing import announce, tell_endpoints
from taskqueue.engine.alerts.messages import enqueue_message
from taskqueue.models import AlertRule, Incident

RAISED, MORE, REMINDER, CLEARED, PASSED = "raised", "more", "reminder", "cleared", "passed"
# The most incidents that a message names; it gives the number of the others.
MOST_NAMED = 50


class News(NamedTuple):
    """News about an incident, for a message that is due."""

    incident: Incident
    # One of the words above; `passed`: it was raised and cleared since the last message.
    what: str


def tell(connection: BaseDatabaseWrapper, rule: AlertRule, now: datetime) -> bool:
    """Enqueue the messages that are due for a locked rule. Return whether there were any.

    Each raise and each clear is told once. News within five minutes of a message waits for the next
    message, and so does everything while the rule is silenced. Events are written regardless of
    both.
    """
    incidents = Incident.objects.using(connection.alias)
    rows = list(incidents.filter(rule_id=rule.id, is_settled=False).order_by("id"))
    announce(connection, rule, rows)
    is_silenced = rule.silenced_until is not None and rule.silenced_until > now
    unheard = [row for row in rows if is_silenced and row.ended_at and row.notified_at is None]
    if unheard:  # Raised and cleared before anybody was to be told.
        incidents.filter(id__in=[row.id for row in unheard]).update(is_settled=True)
    gathers = rule.told_at is not None and now < rule.told_at + timedelta(seconds=GATHERED)
    if is_silenced or gathers:
        return False
    news = [News(row, what) for row in rows if (what := _what(rule, row, now))]
    if not news:
        return False
    for incident, what in news:
        incident.notified_at = now
        incident.told_latest_at = incident.latest_at
        incident.is_settled = what in (CLEARED, PASSED)
    incidents.bulk_update(
        [each.incident for each in news], ["notified_at", "told_latest_at", "is_settled"]
    )
    return _send(connection, rule, news, now)


def _what(rule: AlertRule, incident: Incident, now: datetime) -> str:
    """Return the kind of news about an incident; empty if there is none."""
    if incident.status == IncidentStatus.ENDED:
        return PASSED if incident.notified_at is None else CLEARED
    if incident.status != IncidentStatus.FIRING:
        return ""
    if incident.notified_at is None:
        return RAISED
    if incident.acknowledged_at is not None:
        return ""
    if _tells_each(rule) and incident.latest_at != incident.told_latest_at:
        return MORE
    repeat = timedelta(seconds=REPEAT if rule.repeat_seconds is None else rule.repeat_seconds)
    return REMINDER if now >= incident.notified_at + repeat else ""


def _tells_each(rule: AlertRule) -> bool:
    """Return whether each further case is news; it is not if the threshold is several cases."""
    details = KINDS[AlertKind(rule.kind)]
    threshold = details.threshold if rule.threshold is None else rule.threshold
    return details.counts_each and (threshold or 0) <= 1


def _send(
    connection: BaseDatabaseWrapper, rule: AlertRule, news: Sequence[News], now: datetime
) -> bool:
    """Enqueue the mail and the deliveries to endpoints, if the rule names any.

    Only for a rule with such a channel do later news wait for the next message.
    """
    named = [[each.incident.id, each.what] for each in news[:MOST_NAMED]]
    has_mail = bool(rule.channels.get("mail"))
    if has_mail:
        enqueue_message(MAIL, rule=rule.id, news=named, more=len(news) - len(named))
    has_deliveries = tell_endpoints(connection, rule, news)
    if rule.channels:
        AlertRule.objects.using(connection.alias).filter(id=rule.id).update(told_at=now)
    return has_mail or has_deliveries


def end_incidents(connection: BaseDatabaseWrapper, rule: AlertRule, now: datetime) -> None:
    """End the incidents of a rule that is no longer checked; only events tell of it."""
    rows = Incident.objects.using(connection.alias).filter(rule_id=rule.id, is_settled=False)
    rows.filter(status=IncidentStatus.PENDING).delete()
    rows.filter(ended_at=None).update(status=IncidentStatus.ENDED, ended_at=now)
    announce(connection, rule, list(rows.order_by("id")))
    rows.update(is_settled=True)
