"""Acknowledge an alert, so that no reminders are sent for it."""

from __future__ import annotations

from django.db.transaction import atomic

from taskqueue.core.alerts import IncidentStatus
from taskqueue.core.naming import row_id, shown
from taskqueue.core.refusals import refusal as _
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.locking import Seen, require_seen
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import AlertDoesNotExist, TransitionRefused
from taskqueue.models import AlertRule, Incident


def acknowledge(alert: int | str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Acknowledge a firing alert: no reminders follow, but its end is still reported.

    Raises `AlertDoesNotExist`, and `TransitionRefused` if it is not firing or is acknowledged
    already.
    """
    connection = project_connection()
    who = person(by, reason)
    number = id_of_alert(alert)
    with atomic(using=connection.alias):
        take_write_lock(connection)
        rows = Incident.objects.using(connection.alias).filter(id=number)
        # Lock the rule first, as the session that judges it does: it writes the incidents that it
        # has read.
        rules = AlertRule.objects.using(connection.alias)
        rule = rules.select_for_update().filter(id__in=rows.values("rule_id")).first()
        row = rows.select_for_update().first()
        if row is None or rule is None or row.status == IncidentStatus.PENDING:
            raise missing_alert(alert)
        require_seen(row, seen, _("Alert {number}", number=number))
        if row.status != IncidentStatus.FIRING:
            raise TransitionRefused(_("Alert {number} is over.", number=number))
        if row.acknowledged_at is not None:
            raise TransitionRefused(_(
                "Alert {number} is acknowledged already, by {who}.",
                number=number, who=row.acknowledged_by or _("somebody"),
            ))  # fmt: skip
        rows.update(
            acknowledged_at=dialect_for(connection).now(connection),
            acknowledged_by=who.by,
            acknowledge_reason=who.reason,
        )
        act = Act(str(number), row.status, ": ".join(filter(None, (rule.name, row.subject))))
        audit(connection, "alert", "acknowledge", [act], person=who)


def id_of_alert(value: object) -> int:
    """Return the id of an alert. Raises `AlertDoesNotExist` for a value that is not an id."""
    if not (number := row_id(value)):
        raise missing_alert(value)
    return number


def missing_alert(value: object) -> AlertDoesNotExist:
    """Return the error that says that there is no such alert."""
    return AlertDoesNotExist(_(
        "There is no alert {alert}. manage.py taskqueue alerts list --all shows them.",
        alert=row_id(value) or shown(value),
    ))  # fmt: skip
