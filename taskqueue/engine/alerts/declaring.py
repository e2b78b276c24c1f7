"""Writing the rules that code and settings declare to the database when a worker starts.

The declarations of the worker that started last apply. A silenced rule stays silenced.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.conf import get_settings
from taskqueue.core.alerts import KINDS, AlertKind, AlertScope, RuleSource
from taskqueue.declarations.definition import registry
from taskqueue.engine.alerts.editing import WELL, columns_of, differing, next_of, told
from taskqueue.engine.alerts.telling import end_incidents
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, Person, audit
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import InvalidAlertRule
from taskqueue.models import AlertRule
from taskqueue.models.alert import LONGEST_RULE_NAME

CODE = Person("taskqueue", "declared in code")
NOTIFY, DEFAULT = "notify ", "default "
NOUN = "alert_rule"


def declared_rules() -> dict[str, dict[str, Any]]:
    """Return the fields of the rules that settings and definitions declare, by their names."""
    found: dict[str, dict[str, Any]] = {}
    if (wanted := get_settings().ALERTS) is not None:
        channels = {"mail": wanted["mail"], "endpoints": wanted["endpoints"]}
        for kind, details in KINDS.items():
            if details.is_default and kind not in wanted["leave_out"]:
                found[f"{DEFAULT}{kind}"] = {"kind": kind, **channels}
        if wanted["heartbeat"]:
            found[f"{DEFAULT}{AlertKind.HEARTBEAT}"] = {
                "kind": AlertKind.HEARTBEAT,
                "url": wanted["heartbeat"],
            }
    for definition in registry.all():
        if (notify := definition.options.notify) is not None:
            found[notify_name(definition.name)] = {
                "kind": AlertKind.FAILURE,
                "scope": AlertScope.NAME,
                "pattern": definition.name,
                "threshold": notify.threshold,
                "window": notify.window_seconds,
                "mail": notify.mail,
                "endpoints": notify.endpoints,
            }
    return found


def notify_name(name: str) -> str:
    """Return the name of the rule of a definition."""
    whole = f"{NOTIFY}{name}".replace("/", "_")
    if len(whole) <= LONGEST_RULE_NAME:
        return whole
    digest = sha256(name.encode()).hexdigest()[:16]
    return f"{whole[: LONGEST_RULE_NAME - 17]} {digest}"


def sync_rules() -> list[str]:
    """Create, change and remove rules to match the declarations.

    Return warnings about rules that cannot work. A removed rule keeps its history, and is no longer
    checked.
    """
    connection = project_connection()
    rows = AlertRule.objects.using(connection.alias).filter(source=RuleSource.CODE)
    declared = declared_rules()
    known = {row.name: row for row in rows}
    refused = []
    for name, fields in declared.items():
        try:
            columns = columns_of(fields)
            row = known.get(name)
            # Take no lock if there is nothing to do.
            if row is None or row.removed_at is not None or differing(row, columns):
                _sync_one(connection, name, columns)
        except InvalidAlertRule as error:
            refused.append(f"{name}: {error}")
    for name, row in known.items():
        if name not in declared and row.removed_at is None:
            _remove(connection, name)
    return refused


def _sync_one(connection: BaseDatabaseWrapper, name: str, columns: dict[str, Any]) -> None:
    rows = AlertRule.objects.using(connection.alias)
    with atomic(using=connection.alias):
        take_write_lock(connection)
        now = dialect_for(connection).now(connection)
        row = rows.select_for_update().filter(name=name).first()
        if row is None:
            # Two workers may start at once: the second finds that the first has done it.
            new = AlertRule(
                name=name, source=RuleSource.CODE, declared_at=now, created_by=CODE.by,
                next_at=next_of(columns, now), **columns,
            )  # fmt: skip
            rows.bulk_create([new], ignore_conflicts=True)
            if rows.filter(name=name, declared_at=now).exists():
                audit(connection, NOUN, "create", [Act(name)], person=CODE)
            return
        if row.source != RuleSource.CODE:
            raise InvalidAlertRule(
                "A rule of that name was created at run time. Delete that one: the name is that of"
                " a declared rule."
            )
        changed = {column: columns[column] for column in differing(row, columns)}
        rows.filter(id=row.id).update(
            **changed, declared_at=now, removed_at=None, changed_at=now, next_at=now, **WELL
        )
        audit(connection, NOUN, "edit", [Act(name, detail=told(changed))], person=CODE)


def _remove(connection: BaseDatabaseWrapper, name: str) -> None:
    rows = AlertRule.objects.using(connection.alias)
    with atomic(using=connection.alias):
        take_write_lock(connection)
        row = rows.select_for_update().filter(name=name, removed_at=None).first()
        if row is None:
            return
        now = dialect_for(connection).now(connection)
        rows.filter(id=row.id).update(removed_at=now, changed_at=now, next_at=None)
        end_incidents(connection, row, now)
        person = CODE._replace(reason="no longer declared in code")
        audit(connection, NOUN, "remove", [Act(name)], person=person)
