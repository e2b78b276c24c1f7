"""Raise, update and clear incidents after a rule was judged, under the lock of the rule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.alerts import (
    GOOD_LOOKS,
    KINDS,
    MOST_SUBJECTS,
    AlertKind,
    IncidentStatus,
    Judged,
)
from taskqueue.declarations.payload import storable
from taskqueue.engine.alerts.telling import tell
from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.models import AlertRule, Incident
from taskqueue.models.alert import LONGEST_SUBJECT, LONGEST_TEXT

# Seconds after which what was judged is too old, whoever else has looked.
LONGEST_JUDGING = 300
# What a look may change of an incident.
FOLLOWED = (
    "status", "summary", "words", "remedy", "value", "count", "latest_at", "example", "raised_at",
    "ended_at", "good_looks",
)  # fmt: skip


def settle(
    connection: BaseDatabaseWrapper,
    rule: AlertRule,
    judged: Sequence[Judged] | None,
    *,
    taken_at: datetime,
) -> bool:
    """Move the incidents of a rule by what was judged, and tell what is to be told.

    None: nothing new is known of them. All of it is one transaction, so that what was raised was
    told, and nothing is told twice. Nothing happens if what was judged may be old by now, as
    `lock_current` says. Return whether messages were enqueued.
    """
    with orm_transaction(connection):
        locked = lock_current(connection, rule, taken_at=taken_at)
        if locked is None:
            return False
        if judged is not None:
            follow(connection, locked, judged, dialect_for(connection).now(connection))
            if locked.found is not None:
                AlertRule.objects.using(connection.alias).filter(id=rule.id).update(found=None)
        return tell(connection, locked, dialect_for(connection).now(connection))


def lock_current(
    connection: BaseDatabaseWrapper, rule: AlertRule, *, taken_at: datetime
) -> AlertRule | None:
    """Lock a rule that was taken up then, and note that; None where its judgement may be old.

    It is if somebody has judged it who took it up later, or has changed or deleted it: a worker
    may have been frozen meanwhile. One that is only slow still counts.
    """
    rows = AlertRule.objects.using(connection.alias).filter(id=rule.id)
    locked = rows.filter(next_at__isnull=False).select_for_update().first()
    # Not by the statement: SQLite compares moments as text, and its clock writes fewer digits.
    if locked is None or locked.changed_at != rule.changed_at:
        return None
    if locked.evaluated_at is not None and locked.evaluated_at >= taken_at:
        return None
    if dialect_for(connection).now(connection) > taken_at + timedelta(seconds=LONGEST_JUDGING):
        return None
    rows.update(evaluated_at=taken_at)
    return locked


def follow(
    connection: BaseDatabaseWrapper, rule: AlertRule, judged: Sequence[Judged], now: datetime
) -> None:
    """Raise, follow and clear the incidents of a locked rule."""
    incidents = Incident.objects.using(connection.alias)
    found = incidents.filter(rule_id=rule.id, ended_at=None)
    is_open = {incident.subject: incident for incident in found}
    holding = {_fit(each.subject, LONGEST_SUBJECT): each for each in judged[:MOST_SUBJECTS]}
    new, changed = [], []
    for subject, each in holding.items():
        incident = is_open.get(subject)
        if incident is None:
            incident = Incident(
                rule_id=rule.id, subject=subject, status=IncidentStatus.PENDING, began_at=now
            )
            new.append(incident)
        else:
            changed.append(incident)
        _note(incident, each)
        waits = timedelta(seconds=wait_of(rule))
        if incident.status == IncidentStatus.PENDING and now - incident.began_at >= waits:
            incident.status, incident.raised_at = IncidentStatus.FIRING, now
    over = [incident for subject, incident in is_open.items() if subject not in holding]
    for incident in over:
        incident.good_looks += 1
        if incident.good_looks >= GOOD_LOOKS:
            incident.status, incident.ended_at = IncidentStatus.ENDED, now
    # Nobody has heard of what was pending.
    passed = [incident.id for incident in over if incident.raised_at is None]
    if passed:
        incidents.filter(id__in=passed).delete()
    changed += [incident for incident in over if incident.raised_at is not None]
    if changed:
        incidents.bulk_update(sorted(changed, key=lambda row: row.id), FOLLOWED)
    incidents.bulk_create(new)


def wait_of(rule: AlertRule) -> int:
    """Return the seconds for which the condition has to hold before it is raised."""
    known = rule.for_seconds
    return KINDS[AlertKind(rule.kind)].wait if known is None else known


def _note(incident: Incident, judged: Judged) -> None:
    """Take over what was seen. Of cases, the most that one look found are kept."""
    incident.good_looks = 0
    incident.summary = _fit(judged.summary, LONGEST_TEXT)
    values = judged.words.get("values", {}).items()
    incident.words = dict(judged.words) and {
        **judged.words,
        "values": {name: _fit(value, LONGEST_TEXT) for name, value in values},
    }
    incident.remedy = _fit(judged.remedy, LONGEST_TEXT)
    incident.value = judged.value
    incident.example = judged.example
    incident.count = max(incident.count, judged.count)
    if judged.latest_at is not None and (
        incident.latest_at is None or judged.latest_at > incident.latest_at
    ):
        incident.latest_at = judged.latest_at


def _fit(text: str, limit: int) -> str:
    return storable(text, limit=limit)
