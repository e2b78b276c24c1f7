"""Judging a rule: for which subjects its condition holds at this moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from taskqueue.core.alerts import KINDS, AlertKind, AlertScope, Judged
from taskqueue.models import AlertRule
from taskqueue.monitoring.alerts import figures
from taskqueue.monitoring.alerts import sentences as texts
from taskqueue.monitoring.alerts.sentences import said
from taskqueue.monitoring.alerts.situation import AlertSituation as Situation
from taskqueue.monitoring.notice import ERROR, Notice, duration
from taskqueue.monitoring.notices.failures import failure_jumps, new_errors
from taskqueue.monitoring.notices.judging import notices
from taskqueue.monitoring.notices.out_of_reach import absent_tags, out_of_reach, parked
from taskqueue.monitoring.notices.queues import (
    everything_is_paused,
    growing,
    is_deep,
    nobody_takes,
    of_deep,
    of_late,
    of_queues,
    waits_long,
)
from taskqueue.monitoring.notices.schedules import resting_schedules
from taskqueue.monitoring.notices.workers import long_runs, of_wedged, of_workers

Judge = Callable[[AlertRule, Situation], Iterable[Judged]]


def judge(rule: AlertRule, situation: Situation) -> list[Judged]:
    """Return the subjects for which the condition of the rule holds."""
    return list(JUDGES[AlertKind(rule.kind)](rule, situation))


def is_well(situation: Situation) -> bool:
    """Whether the dashboard has no error to tell."""
    return not any(notice.level == ERROR for notice in notices(situation))


def threshold_of(rule: AlertRule) -> float:
    """Return the number that the rule compares with."""
    known = KINDS[AlertKind(rule.kind)].threshold if rule.threshold is None else rule.threshold
    return known or 0.0


def window_of(rule: AlertRule) -> int:
    """Return the seconds that the rule looks back."""
    known = rule.window_seconds
    return (KINDS[AlertKind(rule.kind)].window or 0) if known is None else known


def fits(rule: AlertRule, scope: AlertScope, name: str) -> bool:
    """Whether the rule is about what has that name; one of another scope is about all."""
    if rule.scope != scope or not rule.pattern:
        return True
    # A name may hold characters that mean something in a pattern.
    return name == rule.pattern or fnmatchcase(name, rule.pattern)


def _failures(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    """Yield definitions whose tasks failed; queues, for a rule about queues."""
    window = window_of(rule)
    is_by_queue = rule.scope == AlertScope.QUEUE
    found: dict[str, list[figures.Failures]] = {}
    for each in situation.failures(window):
        if fits(rule, AlertScope.NAME, each.name) and fits(rule, AlertScope.QUEUE, each.queue_name):
            found.setdefault(each.queue_name if is_by_queue else each.name, []).append(each)
    for subject, rows in sorted(found.items()):
        count = sum(each.number for each in rows)
        latest = max(rows, key=lambda each: each.latest_at)
        if count >= threshold_of(rule):
            text = texts.FAILED_OF_QUEUE if is_by_queue else texts.FAILED_OF_NAME
            query = f"{'queue' if is_by_queue else 'name'}:{subject} status:failed"
            yield Judged(
                subject=subject,
                **said(text, subject=subject, within=window, count=f"{count:,}"),
                remedy=f'Fix the cause: manage.py taskqueue list "{query}".',
                value=float(count),
                count=count,
                latest_at=latest.latest_at,
                example=latest.example,
            )


def _rates(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    """Yield queues or definitions of whose attempts too many failed."""
    by = "name" if rule.scope == AlertScope.NAME else "queue"
    window = window_of(rule)
    for rate in situation.rates(by, window):
        share = rate.failed / rate.total
        if share > threshold_of(rule) and fits(rule, AlertScope(rule.scope), rate.subject):
            text = texts.RATE_OF_QUEUE if by == "queue" else texts.RATE_OF_NAME
            numbers = {"failed": f"{rate.failed:,}", "total": f"{rate.total:,}"}
            yield Judged(
                subject=rate.subject,
                **said(text, subject=rate.subject, within=window, **numbers),
                remedy="Fix the cause: manage.py taskqueue list "
                f'"{by}:{rate.subject} status:failed,retrying".',
                value=share,
            )


def _latencies(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    """Yield queues that fall behind; where nobody serves them or all is paused, others tell."""
    if everything_is_paused(situation):
        return
    for queue in situation.queues:
        if queue.waiting and queue.is_served and waits_long(queue, threshold_of(rule)):
            yield _judged(of_late(queue), value=queue.reachable_seconds)


def _depths(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    most = int(threshold_of(rule))
    for queue in situation.queues:
        counted = replace(queue, waiting=situation.backlog(queue, most))
        if is_deep(counted, most):
            yield _judged(of_deep(counted), value=float(counted.waiting))


def _nobody(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    """Yield that no worker takes tasks: who judges lives, but may be quiet itself."""
    if nobody_takes(situation.workers):
        waiting = sum(queue.waiting for queue in situation.queues)
        yield Judged(
            subject="",
            **said(
                texts.NOBODY,
                count=f"{waiting:,}",
            ),
            remedy="Start one: manage.py runworker. Or manage.py taskqueue workers resume.",
        )


def _wedged(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    for attempt in situation.running:
        is_meant = fits(rule, AlertScope.NAME, attempt.name)
        if attempt.is_wedged and is_meant and fits(rule, AlertScope.QUEUE, attempt.queue_name):
            yield _judged(of_wedged(attempt), example=str(attempt.task_id))


def _missed(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    for overdue in situation.standing.overdue:
        yield Judged(
            subject=overdue.name,
            **said(
                texts.OVERDUE,
                subject=overdue.name,
                age=duration(overdue.seconds),
                detail=overdue.trouble,
            ),
            remedy=f"manage.py taskqueue schedules show {overdue.name}; then read the workers'"
            " logs: something keeps them from their duties.",
            value=overdue.seconds,
        )


def _failed_workflows(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    window = window_of(rule)
    found: dict[str, list[figures.FailedWorkflow]] = {}
    for workflow in situation.failed_workflows:
        if workflow.seconds <= window:
            found.setdefault(workflow.name, []).append(workflow)
    for name, rows in sorted(found.items()):
        if len(rows) >= threshold_of(rule):
            latest = max(rows, key=lambda row: row.finished_at)
            yield Judged(
                subject=name,
                **said(
                    texts.WORKFLOWS_FAILED,
                    subject=name,
                    within=window,
                    count=f"{len(rows):,}",
                ),
                remedy=f"manage.py taskqueue workflows show {latest.id}; fix the cause, then "
                f"workflows retry {latest.id}.",
                value=float(len(rows)),
                count=len(rows),
                latest_at=latest.finished_at,
                example=latest.id,
            )


def _slow_workflows(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    slowest: dict[str, figures.SlowWorkflow] = {}
    for workflow in situation.slow_workflows:
        known = slowest.get(workflow.name)
        if known is None or workflow.seconds > known.seconds:
            slowest[workflow.name] = workflow
    for name, workflow in sorted(slowest.items()):
        times = workflow.seconds / max(workflow.usual, 0.001)
        if times > threshold_of(rule):
            yield Judged(
                subject=name,
                **said(
                    texts.WORKFLOW_SLOW,
                    subject=name,
                    age=duration(workflow.seconds),
                    usual=duration(workflow.usual),
                ),
                remedy=f"manage.py taskqueue workflows show {workflow.id}.",
                value=times,
                example=workflow.id,
            )


def _saturated(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    for limit in situation.limits:
        is_full = limit.concurrency is not None and limit.fullest >= limit.concurrency
        if limit.waiting and (is_full or (limit.used_ratio or 0.0) >= 1.0):
            yield Judged(
                subject=limit.name,
                **said(
                    texts.SATURATED,
                    subject=limit.name,
                    detail=limit.allowed,
                    count=limit.waiting_count,
                ),
                remedy=f"manage.py taskqueue limits show {limit.name}; limits set {limit.name}"
                " raises it.",
                value=float(limit.waiting),
            )


def _findings(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    """Yield what the doctor found when it was last asked."""
    for found in rule.found or ():
        subject = ": ".join(filter(None, (found["check"], found["subject"])))
        yield Judged(subject=subject, summary=found["seen"], remedy=found["remedy"])


def _nothing(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    return iter(())


def _judged(notice: Notice, **more: Any) -> Judged:
    """Return what a notice of the dashboard says."""
    example = {"example": notice.example} if notice.example else {}
    return Judged(
        subject=notice.subject,
        summary=notice.sentence,
        words=notice.words,
        remedy=notice.remedy,
        **{**example, **more},
    )


def _noticed(among: Callable[[Situation], Iterable[Notice]], *codes: str) -> Judge:
    """Return the judge of a rule about some of the dashboard's notices; all, without codes."""

    def judged(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
        return (_judged(notice) for notice in among(situation) if not codes or notice.code in codes)

    return judged


def _scoped(scope: AlertScope, judges: Judge) -> Judge:
    """Return the judge whose subjects are the names that the pattern is compared with."""

    def judged(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
        return (each for each in judges(rule, situation) if fits(rule, scope, each.subject))

    return judged


def _told_apart(scope: AlertScope, among: Callable[[Situation], Iterable[Notice]]) -> Judge:
    """Return the judge of notices of which a name may have several, told apart by their detail."""

    def judged(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
        for notice in among(situation):
            if fits(rule, scope, notice.subject):
                yield replace(_judged(notice), subject=f"{notice.subject}: {notice.detail}")

    return judged


def _long_runs(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    for notice in long_runs(situation):
        if fits(rule, AlertScope.NAME, notice.detail):
            yield _judged(notice, value=notice.seconds, example=notice.subject)


_QUEUE, _NAME = AlertScope.QUEUE, AlertScope.NAME
_WORKER, _SCHEDULE = AlertScope.WORKER, AlertScope.SCHEDULE
JUDGES: dict[AlertKind, Judge] = {
    AlertKind.FAILURE: _failures,
    AlertKind.FAILURE_RATE: _rates,
    AlertKind.QUEUE_LATENCY: _scoped(_QUEUE, _latencies),
    AlertKind.QUEUE_DEPTH: _scoped(_QUEUE, _depths),
    AlertKind.QUEUE_UNSERVED: _scoped(_QUEUE, _noticed(of_queues, "unserved_queue")),
    AlertKind.QUEUE_STALLED: _scoped(_QUEUE, _noticed(of_queues, "stalled")),
    AlertKind.NO_WORKER: _nobody,
    AlertKind.WORKER_LOST: _scoped(_WORKER, _noticed(of_workers, "lost_worker")),
    AlertKind.WORKER_TROUBLE: _scoped(_WORKER, _noticed(of_workers, "worker_trouble")),
    AlertKind.WEDGED: _wedged,
    AlertKind.SCHEDULE_MISSED: _scoped(_SCHEDULE, _missed),
    AlertKind.SCHEDULE_PAUSED: _scoped(
        _SCHEDULE, _noticed(resting_schedules, "schedule_paused_itself")
    ),
    AlertKind.SCHEDULE_TROUBLE: _scoped(_SCHEDULE, _noticed(resting_schedules, "schedule_trouble")),
    AlertKind.WORKFLOW_FAILED: _scoped(AlertScope.WORKFLOW, _failed_workflows),
    AlertKind.WORKFLOW_SLOW: _scoped(AlertScope.WORKFLOW, _slow_workflows),
    AlertKind.LIMIT_SATURATED: _scoped(AlertScope.LIMIT, _saturated),
    AlertKind.FAILURE_JUMP: _scoped(_NAME, _noticed(failure_jumps)),
    AlertKind.NEW_ERROR: _told_apart(_NAME, new_errors),
    AlertKind.LONG_RUN: _long_runs,
    AlertKind.QUEUE_GROWING: _scoped(_QUEUE, _noticed(growing)),
    AlertKind.WORKERS_ABSENT: _scoped(_QUEUE, _noticed(out_of_reach)),
    AlertKind.TAGS_ABSENT: _told_apart(_QUEUE, absent_tags),
    AlertKind.PARKED: _scoped(_NAME, _noticed(parked)),
    AlertKind.DOCTOR: _findings,
    AlertKind.HEARTBEAT: _nothing,
}
