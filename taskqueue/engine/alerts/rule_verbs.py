"""Verbs on alert rules: create, edit, delete, silence and test."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.alerts import AlertKind, RuleSource
from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.own_tasks import HEARTBEAT, MAIL
from taskqueue.declarations.time_kinds import Moment
from taskqueue.engine.alerts.editing import (
    WELL,
    check_name,
    columns_of,
    differing,
    next_of,
    require_endpoints,
    told,
)
from taskqueue.engine.alerts.messages import enqueue_message
from taskqueue.engine.alerts.telling import end_incidents
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.changes import moment_of
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.control.locking import Seen, require_seen
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.sessions import take_write_lock
from taskqueue.engine.webhooks.deliveries import send_test as send_webhook_test
from taskqueue.exceptions import (
    AlertRuleDoesNotExist,
    AlertRuleExists,
    InvalidAlertRule,
    TransitionRefused,
)
from taskqueue.models import AlertRule

NOUN = "alert_rule"
DEFAULT_SILENCE = timedelta(hours=1)


def create_rule(name: str, *, by: object = "", reason: str = "", **fields: Any) -> AlertRule:
    """Create an alert rule, which is checked from now on.

    `kind`, `scope` and `pattern`, `threshold` (a number; seconds or a timedelta if it is a
    duration), `window`, `wait` and `repeat` (seconds or timedeltas), `mail` (addresses),
    `endpoints` (ids), `url`, `enabled`. Raises `InvalidAlertRule`, and `AlertRuleExists`.
    """
    connection = project_connection()
    columns = columns_of(fields)
    check_name(name)
    who = person(by, reason)
    try:
        with atomic(using=connection.alias):
            take_write_lock(connection)
            require_endpoints(connection, columns["channels"])
            now = dialect_for(connection).now(connection)
            row = AlertRule.objects.using(connection.alias).create(
                name=name, created_by=who.by, next_at=next_of(columns, now), **columns
            )
            audit(connection, NOUN, "create", [Act(name, detail=told(columns))], person=who)
    except IntegrityError:
        raise AlertRuleExists(_("There is an alert rule {name!r} already.", name=name)) from None
    return row


def edit_rule(
    name: str, *, by: object = "", reason: str = "", seen: Seen = None, **fields: Any
) -> None:
    """Change the given fields of an alert rule. Open incidents stay open.

    Raises `AlertRuleDoesNotExist`, `InvalidAlertRule`, and `TransitionRefused` if the code declares
    the rule.
    """
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        row = _locked(connection, name, seen)
        _require_row(row)
        columns = columns_of(fields, row)
        changed = {column: columns[column] for column in differing(row, columns)}
        if not changed:
            return
        require_endpoints(connection, changed.get("channels", {}), known=row.channels)
        now = dialect_for(connection).now(connection)
        AlertRule.objects.using(connection.alias).filter(id=row.id).update(
            **changed, changed_at=now, next_at=next_of(columns, now), **WELL
        )
        if not columns["is_enabled"]:
            end_incidents(connection, row, now)
        audit(connection, NOUN, "edit", [Act(name, detail=told(changed))], person=who)


def delete_rule(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Delete an alert rule with its incidents.

    Raises `AlertRuleDoesNotExist`, and `TransitionRefused` if the code declares the rule.
    """
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        row = _locked(connection, name, seen)
        _require_row(row)
        audit(connection, NOUN, "delete", [Act(name)], person=who)
        AlertRule.objects.using(connection.alias).filter(id=row.id).delete()


def silence_rule(
    name: str,
    *,
    until: Moment | None = None,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
) -> None:
    """Send nothing about a rule's incidents until then, by default for an hour.

    Incidents are still raised and shown. When the silence ends, people are told of those that were
    raised meanwhile and are still firing. A second silence replaces time and reason. Raises
    `AlertRuleDoesNotExist`, and `InvalidAlertRule` for a time in the past.
    """
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        row = _locked(connection, name, seen)
        now = dialect_for(connection).now(connection)
        ends = moment_of(DEFAULT_SILENCE if until is None else until, now, what="until")
        if ends <= now:
            raise InvalidAlertRule(_(
                "until must be in the future, not at {ends}.", ends=ends.isoformat()
            ), path=("until",))  # fmt: skip
        AlertRule.objects.using(connection.alias).filter(id=row.id).update(
            silenced_until=ends, silenced_by=who.by, silence_reason=who.reason
        )
        act = Act(name, detail=f"until {ends.isoformat()}")
        audit(connection, NOUN, "silence", [act], person=who)


def unsilence_rule(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """End the silence of a rule. Raises `TransitionRefused` if it is not silenced."""
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        row = _locked(connection, name, seen)
        now = dialect_for(connection).now(connection)
        if row.silenced_until is None or row.silenced_until <= now:
            raise TransitionRefused(_("The alert rule {name!r} is not silenced.", name=name))
        AlertRule.objects.using(connection.alias).filter(id=row.id).update(
            silenced_until=None, silenced_by="", silence_reason=""
        )
        audit(connection, NOUN, "unsilence", [Act(name)], person=who)


def send_test(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Send a test message to each channel of a rule.

    Raises `TransitionRefused` if the rule has no channels, and `EndpointDoesNotExist`.
    """
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        row = _locked(connection, name, seen)
        tasks = []
        if row.kind == AlertKind.HEARTBEAT:
            tasks.append(enqueue_message(HEARTBEAT, rule=row.id))
        if row.channels.get("mail"):
            tasks.append(enqueue_message(MAIL, rule=row.id, news=[], more=0))
        endpoints = row.channels.get("endpoints", ())
        for endpoint in endpoints:
            send_webhook_test(endpoint, by=by, reason=reason)
        if not tasks and not endpoints:
            raise TransitionRefused(_("The alert rule {name!r} has no channel to test.", name=name))
        audit(connection, NOUN, "test", [Act(name)], person=who)


def _locked(connection: BaseDatabaseWrapper, name: str, seen: Seen) -> AlertRule:
    """Lock a rule, and require that it is as the caller saw it. Raises `AlertRuleDoesNotExist`."""
    take_write_lock(connection)
    rows = AlertRule.objects.using(connection.alias)
    row = rows.select_for_update().filter(name=name).first() if is_storable(name) else None
    if row is None:
        hint = did_you_mean(name, list(rows.values_list("name", flat=True)[:1000]))
        raise AlertRuleDoesNotExist(_(
            "There is no alert rule {name!r}.{hint}", name=name, hint=hint
        ))  # fmt: skip
    require_seen(row, seen, _("Alert rule {name!r}", name=name))
    return row


def _require_row(row: AlertRule) -> None:
    if row.source == RuleSource.CODE:
        raise TransitionRefused(_(
            "The alert rule {name!r} is declared in code: change it there, or silence it.",
            name=row.name,
        ))  # fmt: skip
