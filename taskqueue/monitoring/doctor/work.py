"""Whether the work gets done: queues, workers, and the duties that workers serve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.conf import get_settings
from taskqueue.core.states import TaskStatus
from taskqueue.models import Lease, Task
from taskqueue.monitoring.doctor.finding import (
    DUTIES,
    FAILURES,
    INFO,
    LATE,
    PROBLEM,
    QUEUES,
    SCHEDULES,
    WARNING,
    WORKERS,
    Finding,
)
from taskqueue.monitoring.notice import ERROR, Notice, duration
from taskqueue.monitoring.notices import notices, overdue_schedules
from taskqueue.monitoring.read_models.attempt import running_now
from taskqueue.monitoring.read_models.queue import read_queues
from taskqueue.monitoring.read_models.worker import ShownWorker, living, read_workers
from taskqueue.monitoring.reading import is_postgresql, now
from taskqueue.monitoring.searching.streams import IS_LEASED, literal

PRUNING_LATE = timedelta(hours=1)
KEPT = "Read the workers' logs: something keeps them from their duties."
START = "Start a worker: manage.py runworker."
MOST = 1000
MOST_LOOKED_AT = 10_000


def look_at_work(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield the notices of the dashboard, and more."""
    workers = read_workers(limit=MOST)
    queues = read_queues(limit=MOST, workers=workers)
    moment = now()
    running = running_now(limit=MOST)
    conditions = notices(queues=queues, workers=workers, running=running, most=MOST_LOOKED_AT)
    # What is overdue is told among the duties, with more.
    told = (notice for notice in conditions if notice.code != "schedule_overdue")
    findings = [*map(finding_of, told), *versions(workers)]
    yield from findings
    if not any(finding.check == QUEUES for finding in findings):
        yield QUEUES.ok("Every queue with waiting tasks is served.")
    number = len(living(workers))
    if number and not any(finding.check == WORKERS for finding in findings):
        yield WORKERS.ok(f"Running workers: {number}; none is in trouble.")
    yield from _duties(connection, moment, has_workers=number > 0)


def versions(workers: Sequence[ShownWorker]) -> Iterator[Finding]:
    """Yield a finding where workers of several versions are running."""
    counted = Counter(worker.version or "unknown" for worker in living(workers))
    if len(counted) > 1:
        counts = ", ".join(f"{version} ({number})" for version, number in sorted(counted.items()))
        yield WORKERS.info(
            seen=f"Workers of several versions are running: {counts}.",
            remedy="This is fine during a deploy. Restart the old workers afterwards.",
        )


def _duties(connection: BaseDatabaseWrapper, now: Any, *, has_workers: bool) -> Iterator[Finding]:
    """Yield what a worker should have done by now."""
    tasks = Task.objects.using(connection.alias)
    findings = [
        *_due(tasks, now, has_workers),
        *_schedules(has_workers),
        *_leases(connection, now, has_workers),
        *_pruning(tasks, now, has_workers),
    ]
    well = DUTIES.ok("Due tasks, schedules, expired leases and old rows are being handled.")
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
            seen=f"A task has been due for {duration((now - due).total_seconds())}, and no worker "
            f"has made it ready: {task_id}.",
            remedy=KEPT if has_workers else START,
        )


def _schedules(has_workers: bool) -> Iterator[Finding]:
    """Yield due schedules that no worker has served; paused schedules miss nothing."""
    overdue = overdue_schedules(most=MOST + 1)
    if overdue:
        name, seconds, trouble = overdue[0]
        number = f"{MOST:,}+" if len(overdue) > MOST else f"{len(overdue):,}"
        yield DUTIES.problem(
            subject=name,
            seen=f"Schedules are overdue: {number}. The first is {name}, for "
            f"{duration(seconds)}. {trouble}".strip(),
            remedy=KEPT if has_workers else START,
        )


def _leases(connection: BaseDatabaseWrapper, now: Any, has_workers: bool) -> Iterator[Finding]:
    """Yield leases that expired and were not taken over within another lease's time."""
    running = Lease.objects.using(connection.alias).filter(literal(IS_LEASED))
    ends = running.order_by("worker_id").values_list("expires_at", "task_id")[: MOST * 10]
    limit = now - max(LATE, 2 * get_settings().LEASE_DURATION)
    over = [lease for lease in ends if lease[0] < limit]
    if over:
        end, task_id = min(over)
        ago = duration((now - end).total_seconds())
        yield DUTIES.finding(
            PROBLEM if has_workers else WARNING,
            seen=f"Leases expired, the first {ago} ago, and no worker has taken the tasks over: "
            f"{len(over)}. The first belongs to the task {task_id}.",
            remedy="Read the workers' logs."
            if has_workers
            else "Start a worker: it takes them over.",
        )


def _pruning(tasks: QuerySet[Any], now: Any, has_workers: bool) -> Iterator[Finding]:
    old = tasks.filter(prune_after__isnull=False, prune_after__lt=now - PRUNING_LATE)
    first = old.order_by("prune_after").values_list("prune_after", flat=True).first()
    if first is not None:
        yield DUTIES.finding(
            WARNING if has_workers else INFO,
            seen=f"Pruning is {duration((now - first).total_seconds())} behind.",
            remedy="manage.py taskqueue prune; running workers prune thousands of tasks a second.",
        )


# By the code of a notice; all others are about queues.
CHECKS = {
    "failing": FAILURES,
    **dict.fromkeys(("schedule_trouble", "schedule_paused_itself"), SCHEDULES),
    **dict.fromkeys(("lost_worker", "worker_trouble", "wedged", "lost_holds", "parked"), WORKERS),
}


def finding_of(notice: Notice) -> Finding:
    """Return the finding that says what the notice says."""
    check = CHECKS.get(notice.code, QUEUES)
    severity = PROBLEM if notice.level == ERROR else WARNING
    return check.finding(severity, notice.sentence, notice.remedy, notice.subject)
