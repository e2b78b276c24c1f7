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

# Seconds after which a judgement is too old, even if no other worker has made one.
LONGEST_JUDGING = 300
# The fields of an incident that a check may change.
FOLLOWED = (
    "status", "summary", "words", "remedy", "value", "count", "latest_at", "example", "raised_at",
    "ended_at", "good_looks",
)  # fmt: skip


def settle(
    connection: BaseDatabaseWrapper,
    rule: AlertRule,
    judged: Sequence[Judged],
    *,
    taken_at: datetime,
) -> bool:
    """Change the incidents of a rule according to a judgement, and enqueue the messages about them.

    All of this is one transaction, so people are told of
    each raised incident, and never twice. Nothing happens if the judgement may be outdated, as
    `lock_current` decides. Return whether messages were enqueued.
    """
    with orm_transaction(connection):
        locked = lock_current(connection, rule, taken_at=taken_at)
        if locked is None:
            return False
        follow(connection, locked, judged, dialect_for(connection).now(connection))
        return tell(connection, locked, dialect_for(connection).now(connection))


def lock_current(
    connection: BaseDatabaseWrapper, rule: AlertRule, *, taken_at: datetime
) -> AlertRule | None:
    """Lock a rule taken up at that time, and record the check.

    Return None if the judgement is outdated. It is outdated if another worker has taken the rule up
    later and judged it, or if somebody has changed or deleted the rule: this worker may have been
    frozen meanwhile. A judgement that is merely slow still counts.
    """
    rows = AlertRule.objects.using(connection.alias).filter(id=rule.id)
    locked = rows.filter(next_at__isnull=False).select_for_update().first()
    # Not compared by the statement: SQLite compares times as text, and its clock writes fewer
    # digits.
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
    # Nobody was told of pending incidents.
    passed = [incident.id for incident in over if incident.raised_at is None]
    if passed:
        incidents.filter(id__in=passed).delete()
    changed += [incident for incident in over if incident.raised_at is not None]
    if changed:
        incidents.bulk_update(sorted(changed, key=lambda row: row.id), FOLLOWED)
    incidents.bulk_create(new)


def wait_of(rule: AlertRule) -> int:
    """Return how many seconds the condition must hold before an incident is raised."""
    known = rule.for_seconds
    return KINDS[AlertKind(rule.kind)].wait if known is None else known


def _note(incident: Incident, judged: Judged) -> None:
    """Copy a judgement to the incident. Of cases, keep the highest number that one check found."""
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
