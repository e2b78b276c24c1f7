"""Alerts and the rules that raise them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from taskqueue.access.permissions import MANAGE_ALERTS
from taskqueue.core.alerts import KINDS, REPEAT, AlertKind, AlertScope, IncidentStatus, RuleSource
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import AlertRule, Incident
from taskqueue.models.parts import DatabaseClock
from taskqueue.monitoring.alerts.sentences import translated, translated_remedy
from taskqueue.monitoring.read_models.base import EVERYTHING, Viewer, about, from_row

STATUSES = (IncidentStatus.FIRING.value, IncidentStatus.ENDED.value)
MOST = 1_000


@dataclass(frozen=True, kw_only=True)
class ShownAlert:
    """An incident that a rule has raised."""

    id: int
    rule: str = about("The name of the rule.")
    kind: str = about(choices=[kind.value for kind in AlertKind])
    subject: str = about("The queue, name, worker, schedule or so; empty: the whole fleet.")
    status: str = about(choices=STATUSES)
    summary: str = about("The condition as it was seen last, in English.")
    remedy: str
    value: float | None = about("What was compared with the threshold.")
    count: int = about("Of rules about failures: cases since it began.")
    example: str = about("The id of a task or workflow to look at; empty: none.")
    began_at: datetime = about("When the condition was first seen.")
    raised_at: datetime | None
    ended_at: datetime | None = about("null: it is firing.")
    notified_at: datetime | None = about("When it was last told; null: not yet.")
    acknowledged_at: datetime | None
    acknowledged_by: str
    acknowledge_reason: str
    is_silenced: bool = about("Whether the rule tells nobody now.")
    words: Mapping[str, Any] = about("The summary and the remedy with gaps.", in_json=False)

    @property
    def sentence(self) -> str:
        """The condition in the reader's language, if its data is known."""
        return translated(self.words, self.summary)

    @property
    def translated_remedy(self) -> str:
        """The remedy in the reader's language, if its data is known."""
        return translated_remedy(self.words, self.remedy)


@dataclass(frozen=True, kw_only=True)
class ShownAlertRule:
    """A rule, with the numbers that hold."""

    name: str
    kind: str = about(choices=[kind.value for kind in AlertKind])
    scope: str = about(
        "What the pattern is compared with.", choices=[scope.value for scope in AlertScope]
    )
    pattern: str = about("With `*` and `?`; empty: any.")
    threshold: float | None = about("null: the kind has none.")
    window: int | None = about("Seconds that are looked back; null: the kind has no window.")
    wait: int = about("Seconds for which the condition has to hold.")
    repeat: int = about("Seconds between two reminders of what goes on.")
    mail: list[str] | None = about("null: you may not manage alerts.")
    endpoints: list[str] = about("Ids of webhook endpoints.")
    url: str | None = about("That a heartbeat calls; null: you may not manage alerts.")
    is_enabled: bool
    source: str = about(
        "`code`: `notify=` or the setting ALERTS declares it.",
        choices=[source.value for source in RuleSource],
    )
    removed_at: datetime | None = about("Since when no code declares it any more.")
    silenced_until: datetime | None = about("null: it is not silenced.")
    silenced_by: str
    silence_reason: str
    firing: int = about("Alerts of it that are firing.")
    trouble: str = about("Why it could not be judged; empty: all is well.")
    failing_since: datetime | None = about("Since when the calls of a heartbeat fail.")
    failure: str = about("Why the first of them failed.")
    evaluated_at: datetime | None = about("When it was last looked at.", in_json=False)
    told_at: datetime | None = about("When its last messages were enqueued.")
    created_by: str
    created_at: datetime
    changed_at: datetime


def alert_rows() -> QuerySet[Any]:
    """Return the rows of alerts, without conditions that are not raised yet."""
    rows = Incident.objects.using(database_alias()).exclude(status=IncidentStatus.PENDING)
    return rows.select_related("rule").annotate(now=DatabaseClock())


def firing_alerts(*, limit: int = MOST) -> list[ShownAlert]:
    """Return the alerts that are firing, newest first."""
    rows = alert_rows().filter(is_settled=False, status=IncidentStatus.FIRING)
    return shown_alerts(rows.order_by("-id")[:limit])


def shown_alerts(rows: Iterable[Any]) -> list[ShownAlert]:
    """Make the read models for rows of `alert_rows`."""
    return [
        from_row(
            ShownAlert,
            row,
            rule=row.rule.name,
            kind=row.rule.kind,
            is_silenced=is_silenced(row.rule, row.now),
        )
        for row in rows
    ]


def rule_rows() -> QuerySet[Any]:
    """Return the rows of rules by name, with everything that `shown_rules` needs."""
    alias = database_alias()
    open_ones = Incident.objects.using(alias).filter(
        rule_id=OuterRef("id"), status=IncidentStatus.FIRING, is_settled=False
    )
    # In a subquery: with a join, rows would be grouped by the clock, which advances.
    counted = open_ones.order_by().values("rule_id").annotate(number=Count("id")).values("number")
    rows = AlertRule.objects.using(alias).annotate(
        now=DatabaseClock(), firing=Coalesce(Subquery(counted), 0)
    )
    return rows.order_by("name")


def shown_rules(rows: Iterable[Any], viewer: Viewer = EVERYTHING) -> list[ShownAlertRule]:
    """Make the read models for rows of `rule_rows`."""
    may_manage = viewer.has_perm(MANAGE_ALERTS)
    return [_shown_rule(row, may_manage=may_manage) for row in rows]


def rule_named(name: str) -> Any | None:
    """Return the row of that name, as from `rule_rows`; None if there is none."""
    return rule_rows().filter(name=name).first() if is_storable(name) else None


def is_silenced(rule: Any, moment: datetime) -> bool:
    """Return whether a rule is silenced at that moment."""
    return rule.silenced_until is not None and bool(rule.silenced_until > moment)


def firing_by_rule() -> Sequence[tuple[str, int]]:
    """Return by name how many alerts of each enabled rule are firing."""
    rows = rule_rows().filter(next_at__isnull=False)
    return list(rows.values_list("name", "firing")[:MOST])


def _shown_rule(row: Any, *, may_manage: bool) -> ShownAlertRule:
    details = KINDS[AlertKind(row.kind)]
    silenced = is_silenced(row, row.now)
    return from_row(
        ShownAlertRule,
        row,
        threshold=details.threshold if row.threshold is None else row.threshold,
        window=details.window if row.window_seconds is None else row.window_seconds,
        wait=details.wait if row.for_seconds is None else row.for_seconds,
        repeat=REPEAT if row.repeat_seconds is None else row.repeat_seconds,
        mail=list(row.channels.get("mail", ())) if may_manage else None,
        endpoints=list(row.channels.get("endpoints", ())),
        url=row.url if may_manage else None,
        silenced_until=row.silenced_until if silenced else None,
        silenced_by=row.silenced_by if silenced else "",
        silence_reason=row.silence_reason if silenced else "",
    )
