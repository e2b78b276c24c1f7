"""Check whether the work gets done: queues, workers, and the duties of workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.utils.translation import gettext_noop

from taskqueue.conf import get_settings
from taskqueue.core.states import TaskStatus
from taskqueue.models import Lease, Task
from taskqueue.monitoring.doctor.finding import (
    ALERTS,
    DUTIES,
    FAILURES,
    INFO,
    LATE,
    LIMITS,
    PROBLEM,
    QUEUES,
    SCHEDULES,
    WARNING,
    WORKERS,
    Check,
    Finding,
)
from taskqueue.monitoring.doctor.words import gettext as _
from taskqueue.monitoring.doctor.words import short_duration
from taskqueue.monitoring.notice import ERROR, Notice
from taskqueue.monitoring.notices import Situation, notices
from taskqueue.monitoring.notices.doctor import of_doctor
from taskqueue.monitoring.notices.schedules import overdue_schedules
from taskqueue.monitoring.read_models.worker import ShownWorker, living
from taskqueue.monitoring.reading import is_postgresql
from taskqueue.monitoring.searching.streams import IS_LEASED, literal

PRUNING_LATE = timedelta(hours=1)
KEPT = gettext_noop("Read the workers' logs: something keeps them from their duties.")
START = gettext_noop("Start a worker: manage.py runworker.")
MOST = 1000
MOST_LOOKED_AT = 10_000


def look_at_work(
    connection: BaseDatabaseWrapper, situation: Situation | None = None
) -> Iterator[Finding]:
    """Yield the notices of the dashboard, and more."""
    seen = examined_situation() if situation is None else situation
    # Overdue work and halted sequences are reported by other checks; findings are made anew.
    left_out = ("schedule_overdue", "halted", "doctor")
    told = (notice for notice in notices(seen) if notice.code not in left_out)
    findings = [*map(finding_of, told), *versions(seen.workers)]
    yield from findings
    if not any(finding.check == QUEUES for finding in findings):
        yield QUEUES.ok(_("Every queue with waiting tasks is served."))
    number = len(living(seen.workers))
    if number and not any(finding.check == WORKERS for finding in findings):
        yield WORKERS.ok(_("Running workers: {number}; none is in trouble.").format(number=number))
    yield from _duties(connection, seen, has_workers=number > 0)


def examined_situation() -> Situation:
    """Return a situation that reads more tasks than a page does."""
    return Situation(looked_at=MOST_LOOKED_AT)


def versions(workers: Sequence[ShownWorker]) -> Iterator[Finding]:
    """Yield a finding where workers of several versions are running."""
    counted = Counter(worker.version or _("unknown") for worker in living(workers))
    if len(counted) > 1:
        counts = ", ".join(f"{version} ({number})" for version, number in sorted(counted.items()))
        yield WORKERS.info(
            seen=_("Workers of several versions are running: {counts}.").format(counts=counts),
            remedy=_("This is fine during a deploy. Restart the old workers afterwards."),
        )


def _duties(
    connection: BaseDatabaseWrapper, situation: Situation, *, has_workers: bool
) -> Iterator[Finding]:
    """Yield work that a worker should have done by now."""
    tasks, now = Task.objects.using(connection.alias), situation.now
    findings = [
        *_due(tasks, now, has_workers),
        *_schedules(situation, has_workers),
        *_leases(connection, now, has_workers),
        *_pruning(tasks, now, has_workers),
    ]
    well = DUTIES.ok(_("Due tasks, schedules, expired leases and old rows are being handled."))
    yield from findings or [well]


def _due(tasks: QuerySet[Any], now: Any, has_workers: bool) -> Iterator[Finding]:
    """Yield due tasks that no worker has made ready."""
    waiting = tasks.filter(
        status__in=[TaskStatus.SCHEDULED, TaskStatus.RETRYING], run_after__lt=now - LATE
    )
    if not is_postgresql():
        waiting = waiting.filter(literal("taskqueue_task.status IN ('retrying', 'scheduled')"))
    first = waiting.order_by("run_after").values_list("run_after", "id").first()
    if first is not None:
        due, task_id = first
        yield DUTIES.problem(
            seen=_(
                "A task has been due for {age}, and no worker has made it ready: {task_id}."
            ).format(age=short_duration((now - due).total_seconds()), task_id=task_id),
            remedy=_(KEPT if has_workers else START),
        )


def _schedules(situation: Situation, has_workers: bool) -> Iterator[Finding]:
    """Yield due schedules that no worker has served; paused schedules miss nothing."""
    overdue = situation.standing.overdue
    if overdue:
        first = overdue[0]
        number = f"{MOST:,}+" if len(overdue) > MOST else f"{len(overdue):,}"
        found = DUTIES.problem(
            subject=first.name,
            seen=_("Schedules are overdue: {number}. The first is {name}, for {age}. {trouble}")
            .format(
                number=number,
                name=first.name,
                age=short_duration(first.seconds),
                trouble=first.trouble,
            )
            .strip(),
            remedy=_(KEPT if has_workers else START),
        )
        yield replace(found, notice=next(overdue_schedules(situation)))


def _leases(connection: BaseDatabaseWrapper, now: Any, has_workers: bool) -> Iterator[Finding]:
    """Yield leases that expired and were not taken over within the duration of another lease."""
    running = Lease.objects.using(connection.alias).filter(literal(IS_LEASED))
    ends = running.order_by("worker_id").values_list("expires_at", "task_id")[: MOST * 10]
    limit = now - max(LATE, 2 * get_settings().LEASE_DURATION)
    over = [lease for lease in ends if lease[0] < limit]
    if over:
        end, task_id = min(over)
        ago = short_duration((now - end).total_seconds())
        yield DUTIES.finding(
            PROBLEM if has_workers else WARNING,
            seen=_(
                "Leases expired, the first {ago} ago, and no worker has taken the tasks "
                "over: {number}. The first belongs to the task {task_id}."
            ).format(ago=ago, number=len(over), task_id=task_id),
            remedy=_("Read the workers' logs.")
            if has_workers
            else _("Start a worker: it takes them over."),
        )


def _pruning(tasks: QuerySet[Any], now: Any, has_workers: bool) -> Iterator[Finding]:
    old = tasks.filter(prune_after__isnull=False, prune_after__lt=now - PRUNING_LATE)
    first = old.order_by("prune_after").values_list("prune_after", flat=True).first()
    if first is not None:
        yield DUTIES.finding(
            WARNING if has_workers else INFO,
            seen=_("Pruning is {age} behind.").format(
                age=short_duration((now - first).total_seconds())
            ),
            remedy=_(
                "manage.py taskqueue prune; running workers prune thousands of tasks a second."
            ),
        )


# By the code of a notice; all others are about queues.
CHECKS = {
    **dict.fromkeys(("failing", "failure_jump", "new_error"), FAILURES),
    **dict.fromkeys(("schedule_trouble", "schedule_paused_itself"), SCHEDULES),
    **dict.fromkeys(
        (
            "lost_worker",
            "worker_trouble",
            "wedged",
            "long_run",
            "lost_holds",
            "parked",
        ),
        WORKERS,
    ),
    "heartbeat_failing": ALERTS,
    "halted": LIMITS,
}


def found_on_hosts(situation: Situation) -> Iterator[Finding]:
    """Yield the findings of workers about their hosts, which this process cannot make itself."""
    for notice in of_doctor(situation):
        if notice.host:
            check = Check(notice.subject.partition(":")[0])
            severity = PROBLEM if notice.level == ERROR else WARNING
            found = check.finding(severity, notice.sentence, notice.remedy, notice.subject)
            yield replace(found, notice=notice)


def finding_of(notice: Notice) -> Finding:
    """Return the finding that says what the notice says."""
    check = CHECKS.get(notice.code, QUEUES)
    severity = PROBLEM if notice.level == ERROR else WARNING
    found = check.finding(severity, notice.sentence, notice.remedy, notice.subject)
    return replace(found, notice=notice)
