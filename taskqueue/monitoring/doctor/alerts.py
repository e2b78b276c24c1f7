"""Check that messages of alerts are sent: the internal queue, and rules that fail.

A heartbeat that cannot be called is a notice, which `work` reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.engine.connections import database_alias
from taskqueue.models import AlertRule, Endpoint
from taskqueue.monitoring.doctor.finding import ALERTS, Finding
from taskqueue.monitoring.doctor.words import gettext as _
from taskqueue.monitoring.notices import Situation

MOST = 1_000


def look_at_alerts(
    connection: BaseDatabaseWrapper, situation: Situation | None = None
) -> Iterator[Finding]:
    """Yield what keeps alerts from reaching people; nothing if no rule is enabled."""
    rows: Any = AlertRule.objects.using(connection.alias).filter(next_at__isnull=False)
    columns = ("name", "kind", "channels", "url", "trouble")
    rules = list(rows.only(*columns).order_by("name")[:MOST])
    if not rules:
        return
    seen = Situation() if situation is None else situation
    findings = [*_queue(seen), *_rules(rules)]
    yield from findings or [
        ALERTS.ok(
            _("Alert rules: {number}; their messages go out.").format(number=f"{len(rules):,}")
        )
    ]


def _queue(situation: Situation) -> Iterator[Finding]:
    """Yield what is wrong with the queue in which messages wait."""
    name = get_settings().INTERNAL_QUEUE
    queue = next((each for each in situation.queues if each.name == name), None)
    if any(not pause.name for pause in situation.standing.pauses):
        yield ALERTS.problem(
            seen=_("Everything is paused: no message of an alert goes out."),
            remedy=_("manage.py taskqueue resume --all, unless the pause is still needed."),
        )
    if queue is not None and queue.is_paused:
        yield ALERTS.problem(
            subject=name,
            seen=_(
                "The queue {name} is paused, on which messages of alerts and webhooks wait."
            ).format(name=name),
            remedy=_("manage.py taskqueue resume {name}. Or name another INTERNAL_QUEUE.").format(
                name=name
            ),
        )
    if queue is not None and queue.limit is not None:
        yield ALERTS.warning(
            subject=name,
            seen=_(
                "The queue {name} is limited ({limit}): messages of alerts wait behind other tasks."
            ).format(name=name, limit=queue.limit),
            remedy=_(
                "manage.py taskqueue queues limit {name} --lift. Or name another INTERNAL_QUEUE."
            ).format(name=name),
        )
    if not any(each.takes_tasks and each.serves(name) for each in situation.workers):
        yield ALERTS.problem(
            subject=name,
            seen=_(
                "No running worker serves the queue {name}, on which messages of alerts wait."
            ).format(name=name),
            remedy=_("Start a worker with --queues {subject}, or one without --queues.").format(
                subject=name
            ),
        )


def _endpoints(rules: Sequence[AlertRule]) -> Iterator[Finding]:
    """Yield rules that name an endpoint which is deleted or disabled."""
    named = [(id, rule) for rule in rules for id in rule.channels.get("endpoints", ())]
    rows = Endpoint.objects.using(database_alias()).filter(id__in={id for id, _ in named})
    is_enabled = {str(id): enabled for id, enabled in rows.values_list("id", "is_enabled")}
    for id, rule in named:
        if not is_enabled.get(id):
            is_there = id in is_enabled
            yield ALERTS.warning(
                subject=rule.name,
                seen=(
                    _("The alert rule {name} tells the webhook endpoint {id}, which is disabled.")
                    if is_there
                    else _(
                        "The alert rule {name} tells the webhook endpoint {id}, "
                        "which does not exist."
                    )
                ).format(name=rule.name, id=id),
                remedy=f"manage.py taskqueue webhooks enable {id}."
                if is_there
                else _(
                    "Name another one where the rule is declared, or by manage.py taskqueue "
                    "alerts edit '{name}' --endpoints ID."
                ).format(name=rule.name),
            )


def _rules(rules: Sequence[AlertRule]) -> Iterator[Finding]:
    """Yield rules that could not be judged, and rules without channels."""
    yield from _endpoints(rules)
    for rule in rules:
        if rule.trouble:
            yield ALERTS.warning(
                subject=rule.name,
                seen=_("The alert rule {name} could not be judged: {trouble}").format(
                    name=rule.name, trouble=rule.trouble
                ),
                remedy=_("Read the workers' logs."),
            )
    silent = [rule.name for rule in rules if not rule.channels and not rule.url]
    if silent:
        yield ALERTS.info(
            subject=silent[0],
            seen=_(
                "Alert rules without mail or webhook: {number}. The first is {first}. Their "
                "alerts are shown, and told to handlers of alert.raised."
            ).format(number=f"{len(silent):,}", first=silent[0]),
            remedy=f"manage.py taskqueue alerts edit '{silent[0]}' --mail ops@example.org",
        )
