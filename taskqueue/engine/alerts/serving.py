"""Pick the rules that are due, so that only one worker judges each at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q

from taskqueue.core.alerts import EVERY, KINDS, AlertKind
from taskqueue.engine.connections import installed, orm_transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.statement import Moment
from taskqueue.models import AlertRule, Incident

# Null while no rule is enabled, so that the duty needs no statement of its own.
NEXT_ALERT = Moment.of("""
    SELECT min(next_at)
    FROM taskqueue_alertrule
    WHERE next_at IS NOT NULL
""")
# The most rules that one step takes up.
BATCH = 1_000


class TakenUp(NamedTuple):
    """The rules that this worker judges now, and when it took them up."""

    rules: Sequence[AlertRule]
    at: datetime


def take_up(connection: BaseDatabaseWrapper) -> TakenUp:
    """Take up the rules that are due, except those that another worker is taking up.

    They become due again soon, so that another worker judges them if this one dies or freezes. If
    another worker has judged a rule meanwhile, `incidents.settle` refuses this worker's judgement.
    """
    with orm_transaction(connection):
        rows = AlertRule.objects.using(connection.alias)
        now = dialect_for(connection).now(connection)
        due = rows.filter(next_at__lte=now).order_by("id")
        rules = list(due.select_for_update(skip_locked=True)[:BATCH])
        intervals: defaultdict[float, list[int]] = defaultdict(list)
        for rule in rules:
            intervals[interval_of(rule)].append(rule.id)
        for seconds, ids in intervals.items():
            rows.filter(id__in=ids).update(next_at=now + timedelta(seconds=seconds))
        return TakenUp(rules, now)


def note_quiet(connection: BaseDatabaseWrapper, rule_ids: Sequence[int], at: datetime) -> None:
    """Record that the conditions of these rules did not hold, unless another worker was later."""
    if rule_ids:
        with installed(connection):
            earlier = Q(evaluated_at=None) | Q(evaluated_at__lt=at)
            rows = AlertRule.objects.using(connection.alias).filter(earlier, id__in=list(rule_ids))
            rows.update(evaluated_at=at)


def interval_of(rule: AlertRule) -> float:
    """Return the seconds between two checks; a heartbeat has its own interval."""
    if rule.kind != AlertKind.HEARTBEAT:
        return EVERY
    return rule.threshold or KINDS[AlertKind.HEARTBEAT].threshold or EVERY


def with_incidents(connection: BaseDatabaseWrapper, rule_ids: Collection[int]) -> set[int]:
    """Return the rules with incidents that are open or that people must still be told of."""
    with installed(connection):
        rows = Incident.objects.using(connection.alias).filter(is_settled=False)
        return set(rows.filter(rule_id__in=list(rule_ids)).values_list("rule_id", flat=True))


def note_trouble(connection: BaseDatabaseWrapper, rule: AlertRule, trouble: str) -> None:
    """Record why a rule could not be judged; an empty text if it could."""
    if rule.trouble != trouble:
        with installed(connection):
            AlertRule.objects.using(connection.alias).filter(id=rule.id).update(trouble=trouble)
