"""Judging rules about tasks: failures, failure rates, attempts that run for too long."""

from __future__ import annotations

from collections.abc import Iterator

from taskqueue.core.alerts import AlertScope, Judged
from taskqueue.models import AlertRule
from taskqueue.monitoring.alerts import figures
from taskqueue.monitoring.alerts import sentences as texts
from taskqueue.monitoring.alerts.rules import fits, judged_by, threshold_of, window_of
from taskqueue.monitoring.alerts.sentences import said
from taskqueue.monitoring.alerts.situation import AlertSituation
from taskqueue.monitoring.notices.workers import long_runs, of_wedged

# Deliveries of webhooks, mails of alerts and similar tasks: a failed delivery must not raise an
# alert whose own delivery then fails.
OWN = ("taskqueue.webhooks.", "taskqueue.alerts.")


def failures(rule: AlertRule, situation: AlertSituation) -> Iterator[Judged]:
    """Yield definitions whose tasks failed; queues, for a rule about queues."""
    window = window_of(rule)
    is_by_queue = rule.scope == AlertScope.QUEUE
    found: dict[str, list[figures.Failures]] = {}
    for each in situation.failures(window):
        if _is_own(each.name) and not _is_own(rule.pattern):
            continue
        if fits(rule, AlertScope.NAME, each.name) and fits(rule, AlertScope.QUEUE, each.queue_name):
            found.setdefault(each.queue_name if is_by_queue else each.name, []).append(each)
    for subject, rows in sorted(found.items()):
        count = sum(each.number for each in rows)
        latest = max(rows, key=lambda each: each.latest_at)
        if count >= threshold_of(rule):
            text = texts.FAILED_OF_QUEUE if is_by_queue else texts.FAILED_OF_NAME
            yield Judged(
                subject=subject,
                **said(text, subject=subject, count=f"{count:,}", times={"within": window}),
                value=float(count),
                count=count,
                latest_at=latest.latest_at,
                example=latest.example,
            )


def _is_own(name: str) -> bool:
    """Return whether it is a name, or a pattern of names, of tasks that send messages."""
    return name.startswith(OWN)


def rates(rule: AlertRule, situation: AlertSituation) -> Iterator[Judged]:
    """Yield queues or definitions with too many failed attempts."""
    by = "name" if rule.scope == AlertScope.NAME else "queue"
    window = window_of(rule)
    for rate in situation.rates(by, window):
        share = rate.failed / rate.total
        if share > threshold_of(rule) and fits(rule, AlertScope(rule.scope), rate.subject):
            text = texts.RATE_OF_QUEUE if by == "queue" else texts.RATE_OF_NAME
            yield Judged(
                subject=rate.subject,
                **said(
                    text,
                    subject=rate.subject,
                    failed=f"{rate.failed:,}",
                    total=f"{rate.total:,}",
                    times={"within": window},
                ),
                value=share,
            )


def wedged(rule: AlertRule, situation: AlertSituation) -> Iterator[Judged]:
    """Yield attempts that seem to hang."""
    for attempt in situation.running:
        is_meant = fits(rule, AlertScope.NAME, attempt.name)
        if attempt.is_wedged and is_meant and fits(rule, AlertScope.QUEUE, attempt.queue_name):
            yield judged_by(of_wedged(attempt), example=str(attempt.task_id))


def running_long(rule: AlertRule, situation: AlertSituation) -> Iterator[Judged]:
    """Yield attempts that have been running for far longer than most of their name."""
    for notice in long_runs(situation):
        if fits(rule, AlertScope.NAME, notice.detail):
            yield judged_by(notice, value=notice.seconds, example=notice.subject)
