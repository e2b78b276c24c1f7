"""Judging a rule: for which subjects its condition holds at this moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from taskqueue.core.alerts import AlertKind, AlertScope, Judged
from taskqueue.models import AlertRule
from taskqueue.monitoring.alerts import queues, tasks, workflows
from taskqueue.monitoring.alerts import sentences as texts
from taskqueue.monitoring.alerts.rules import fits, judged_by
from taskqueue.monitoring.alerts.sentences import said
from taskqueue.monitoring.alerts.situation import AlertSituation as Situation
from taskqueue.monitoring.notice import ERROR, Notice
from taskqueue.monitoring.notices.doctor import alert_subject_of
from taskqueue.monitoring.notices.failing import is_internal
from taskqueue.monitoring.notices.failures import failure_jumps, new_errors, new_errors_of_all
from taskqueue.monitoring.notices.judging import notices
from taskqueue.monitoring.notices.out_of_reach import absent_tags, out_of_reach, parked
from taskqueue.monitoring.notices.queues import growing, of_queues
from taskqueue.monitoring.notices.schedules import resting_schedules
from taskqueue.monitoring.notices.workers import of_workers

Judge = Callable[[AlertRule, Situation], Iterable[Judged]]


def judge(rule: AlertRule, situation: Situation) -> list[Judged]:
    """Return the subjects for which the condition of the rule holds now."""
    return list(JUDGES[AlertKind(rule.kind)](rule, situation))


def is_well(situation: Situation) -> bool:
    """Return whether the dashboard shows no errors, apart from those of the doctor.

    Findings of the doctor stop a heartbeat as alerts, which people can silence or leave out.
    """
    return not any(
        notice.level == ERROR and notice.code != "doctor" for notice in notices(situation)
    )


def _missed(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    for overdue in situation.standing.overdue:
        yield Judged(
            subject=overdue.name,
            **said(
                texts.OVERDUE,
                subject=overdue.name,
                detail=overdue.trouble,
                ages={"age": overdue.seconds},
            ),
            value=overdue.seconds,
        )


def _findings(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    """Yield the problems that the doctor found when a worker last ran it."""
    for note in situation.standing.notes:
        if note["severity"] == "problem":
            yield Judged(
                subject=alert_subject_of(note),
                summary=note["seen"],
                remedy=note["remedy"],
                words=note["words"],
            )


def _nothing(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    return iter(())


def _noticed(among: Callable[[Situation], Iterable[Notice]], *codes: str) -> Judge:
    """Return the judge of a rule about notices with these codes; about all without codes."""

    def judged(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
        return (
            judged_by(notice) for notice in among(situation) if not codes or notice.code in codes
        )

    return judged


def _scoped(scope: AlertScope, judges: Judge) -> Judge:
    """Return a judge that compares the rule's pattern with names of that scope."""

    def judged(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
        return (each for each in judges(rule, situation) if fits(rule, scope, each.subject))

    return judged


def _told_apart(scope: AlertScope, among: Callable[[Situation], Iterable[Notice]]) -> Judge:
    """Return a judge of notices that their details distinguish, as a name may have several."""

    def judged(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
        for notice in among(situation):
            if fits(rule, scope, notice.subject):
                yield replace(judged_by(notice), subject=f"{notice.subject}: {notice.detail}")

    return judged


def _new_errors(rule: AlertRule, situation: Situation) -> Iterator[Judged]:
    """Yield new kinds of error; those of taskqueue itself only for a rule that names them."""
    among = new_errors_of_all if is_internal(rule.pattern) else new_errors
    yield from _told_apart(_NAME, among)(rule, situation)


_QUEUE, _NAME = AlertScope.QUEUE, AlertScope.NAME
_WORKER, _SCHEDULE = AlertScope.WORKER, AlertScope.SCHEDULE
JUDGES: dict[AlertKind, Judge] = {
    AlertKind.FAILURE: tasks.failures,
    AlertKind.FAILURE_RATE: tasks.rates,
    AlertKind.QUEUE_LATENCY: _scoped(_QUEUE, queues.latencies),
    AlertKind.QUEUE_DEPTH: _scoped(_QUEUE, queues.depths),
    AlertKind.QUEUE_UNSERVED: _scoped(_QUEUE, _noticed(of_queues, "unserved_queue")),
    AlertKind.QUEUE_STALLED: _scoped(_QUEUE, _noticed(of_queues, "stalled")),
    AlertKind.NO_WORKER: queues.nobody,
    AlertKind.WORKER_LOST: _scoped(_WORKER, _noticed(of_workers, "lost_worker")),
    AlertKind.WORKER_TROUBLE: _scoped(_WORKER, _noticed(of_workers, "worker_trouble")),
    AlertKind.WEDGED: tasks.wedged,
    AlertKind.SCHEDULE_MISSED: _scoped(_SCHEDULE, _missed),
    AlertKind.SCHEDULE_PAUSED: _scoped(
        _SCHEDULE, _noticed(resting_schedules, "schedule_paused_itself")
    ),
    AlertKind.SCHEDULE_TROUBLE: _scoped(_SCHEDULE, _noticed(resting_schedules, "schedule_trouble")),
    AlertKind.WORKFLOW_FAILED: _scoped(AlertScope.WORKFLOW, workflows.failed),
    AlertKind.WORKFLOW_SLOW: _scoped(AlertScope.WORKFLOW, workflows.slow),
    AlertKind.LIMIT_SATURATED: _scoped(AlertScope.LIMIT, queues.saturated),
    AlertKind.FAILURE_JUMP: _scoped(_NAME, _noticed(failure_jumps)),
    AlertKind.NEW_ERROR: _new_errors,
    AlertKind.LONG_RUN: tasks.running_long,
    AlertKind.QUEUE_GROWING: _scoped(_QUEUE, _noticed(growing)),
    AlertKind.WORKERS_ABSENT: _scoped(_QUEUE, _noticed(out_of_reach)),
    AlertKind.TAGS_ABSENT: _told_apart(_QUEUE, absent_tags),
    AlertKind.PARKED: _scoped(_NAME, _noticed(parked)),
    AlertKind.DOCTOR: _findings,
    AlertKind.HEARTBEAT: _nothing,
}
