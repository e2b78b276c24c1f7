"""Whether the work gets done: queues, workers, and the duties that workers serve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from shlex import quote
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.conf import get_settings
from taskqueue.core.states import TaskStatus
from taskqueue.models import Lease, Schedule, Task
from taskqueue.monitoring.doctor.finding import (
    DUTIES,
    FAILURES,
    INFO,
    LATE,
    OK,
    PROBLEM,
    QUEUES,
    SCHEDULES,
    WARNING,
    WORKERS,
    Finding,
    duration,
)
from taskqueue.monitoring.notice import ERROR, Notice
from taskqueue.monitoring.notices import notices
from taskqueue.monitoring.read_models.queue import read_queues
from taskqueue.monitoring.read_models.worker import ShownWorker, living, read_workers
from taskqueue.monitoring.reading import is_postgresql, now
from taskqueue.monitoring.running import running_now
from taskqueue.monitoring.searching.streams import IS_LEASED, literal

PRUNING_LATE = timedelta(hours=1)
KEPT = "See the workers' logs: something keeps them from their duties."
START = "Start a worker: manage.py runworker."
MOST = 1000
MOST_LOOKED_AT = 10_000


def look_at_work(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """What the dashboard warns of, and what it does not."""
    workers = read_workers(limit=MOST)
    queues = read_queues(limit=MOST, workers=workers)
    moment = now()
    running = running_now(limit=MOST)
    told = notices(queues=queues, workers=workers, running=running, most=MOST_LOOKED_AT)
    found = [*map(finding_of, told), *versions(workers)]
    yield from found
    if not any(each.check == QUEUES for each in found):
        yield Finding(check=QUEUES, severity=OK, seen="Every queue where tasks wait is served.")
    number = len(living(workers))
    if number and not any(each.check == WORKERS for each in found):
        seen = f"Workers that live: {number}; none is in trouble."
        yield Finding(check=WORKERS, severity=OK, seen=seen)
    yield from _duties(connection, moment, has_workers=number > 0)


def versions(workers: Sequence[ShownWorker]) -> Iterator[Finding]:
    """Workers of several versions of taskqueue side by side."""
    counted = Counter(worker.version or "unknown" for worker in living(workers))
    if len(counted) > 1:
        told = ", ".join(f"{version} ({number})" for version, number in sorted(counted.items()))
        yield Finding(
            check=WORKERS,
            severity=INFO,
            seen=f"Workers of several versions run side by side: {told}.",
            remedy="Fine while a deploy lasts. Afterwards restart the old ones.",
        )


def _duties(connection: BaseDatabaseWrapper, now: Any, *, has_workers: bool) -> Iterator[Finding]:
    """What some worker ought to have done by now."""
    tasks = Task.objects.using(connection.alias)
    found = [
        *_due(tasks, now, has_workers),
        *_schedules(connection, now, has_workers),
        *_leases(connection, now, has_workers),
        *_pruning(tasks, now, has_workers),
    ]
    yield from found
    if not found:
        yield Finding(
            check=DUTIES, severity=OK, seen="What is due, has run out or is old is dealt with."
        )


def _due(tasks: QuerySet[Any], now: Any, has_workers: bool) -> Iterator[Finding]:
    """Tasks whose time has come, and that nobody made ready."""
    waiting = tasks.filter(
        status__in=[TaskStatus.SCHEDULED, TaskStatus.RETRYING], run_after__lt=now - LATE
    )
    if not is_postgresql():
        waiting = waiting.filter(literal("taskqueue_task.status IN ('retrying', 'scheduled')"))
    first = waiting.order_by("run_after").values_list("run_after", "id").first()
    if first is not None:
        due, task_id = first
        yield Finding(
            check=DUTIES,
            severity=PROBLEM,
            seen=f"A task has been due for {duration((now - due).total_seconds())}, and no worker "
            f"has made it ready: {task_id}.",
            remedy=KEPT if has_workers else START,
        )


def _schedules(connection: BaseDatabaseWrapper, now: Any, has_workers: bool) -> Iterator[Finding]:
    """Schedules whose time has come, and that nobody served; paused ones miss nothing."""
    active = Schedule.objects.using(connection.alias).filter(
        next_at__isnull=False, is_enabled=True, removed_at__isnull=True, paused_at__isnull=True
    )
    late = active.filter(next_at__lt=now - LATE).order_by("next_at")
    rows = list(late.values_list("name", "next_at", "trouble")[: MOST + 1])
    if rows:
        name, next_at, trouble = rows[0]
        number = f"{MOST:,}+" if len(rows) > MOST else f"{len(rows):,}"
        yield Finding(
            check=DUTIES,
            severity=PROBLEM,
            subject=name,
            seen=f"Schedules are overdue: {number}. The first is {name}, for "
            f"{duration((now - next_at).total_seconds())}. {trouble}".strip(),
            remedy=KEPT if has_workers else START,
        )


def _leases(connection: BaseDatabaseWrapper, now: Any, has_workers: bool) -> Iterator[Finding]:
    """Leases that ran out and were not taken over within another lease's time."""
    running = Lease.objects.using(connection.alias).filter(literal(IS_LEASED))
    ends = running.order_by("worker_id").values_list("expires_at", "task_id")[: MOST * 10]
    limit = now - max(LATE, 2 * get_settings().LEASE_DURATION)
    over = [each for each in ends if each[0] < limit]
    if over:
        end, task_id = min(over)
        ago = duration((now - end).total_seconds())
        yield Finding(
            check=DUTIES,
            severity=PROBLEM if has_workers else WARNING,
            seen=f"Leases ran out, the first {ago} ago, and nobody has taken the tasks over: "
            f"{len(over)}. The first is of the task {task_id}.",
            remedy="See the workers' logs."
            if has_workers
            else "Start a worker: it takes them over.",
        )


def _pruning(tasks: QuerySet[Any], now: Any, has_workers: bool) -> Iterator[Finding]:
    old = tasks.filter(prune_after__isnull=False, prune_after__lt=now - PRUNING_LATE)
    first = old.order_by("prune_after").values_list("prune_after", flat=True).first()
    if first is not None:
        yield Finding(
            check=DUTIES,
            severity=WARNING if has_workers else INFO,
            seen=f"Pruning is {duration((now - first).total_seconds())} behind.",
            remedy="manage.py taskqueue prune; live workers prune some thousands a second.",
        )


SAYINGS = {
    "no_worker": (
        QUEUES, "No worker lives. Tasks that wait: {count}.", "Start one: manage.py runworker."
    ),
    "unserved_queue": (
        QUEUES, "No live worker serves the queue {subject}. Tasks that wait there: {count}.",
        "Start a worker with --queues {subject}, or one without --queues.",
    ),
    "paused_with_waiting": (
        QUEUES, "The queue {subject} is paused. Tasks that wait there: {count}.",
        "manage.py taskqueue resume {subject}, if the pause has served its purpose.",
    ),
    "stalled": (
        QUEUES,
        "In the queue {subject} nothing starts, though a worker has free slots. Tasks that wait"
        " there: {count}.",
        "manage.py taskqueue why ID for one of them; see the workers' logs.",
    ),
    "lost_worker": (
        WORKERS, "The worker {subject} was lost: it gave no sign of life within its lease.",
        "See its host: was it killed, out of memory, cut off?",
    ),
    "worker_trouble": (
        WORKERS, "The worker {subject} is in trouble: {detail}",
        "Mend what it says, and restart it unless it mends itself.",
    ),
    "wedged": (
        WORKERS, "The task {subject} has run for far longer than its like, in silence.",
        "manage.py taskqueue show {subject}, then stop {subject}.",
    ),
    "lost_holds": (
        WORKERS,
        "Tasks that lost workers hold on leases that last on: {count}. The longest is {subject}.",
        "manage.py taskqueue why {subject}; then stop {subject} --yes, or retry {subject} --yes."
        " The body may still run if the worker's host is only cut off.",
    ),
    "failing": (
        FAILURES,
        "In the queue {subject} {count} of {total} attempts failed within the last 15 minutes.",
        "manage.py taskqueue list \"queue:{subject} status:failed,retrying\", and mend the cause.",
    ),
    "absent_workers": (
        QUEUES,
        "In the queue {subject} tasks wait for named workers that are away, or take nothing:"
        " {count}. The first is {example}, for {age}: it waits for {detail}.",
        "Start a worker with --name {detail}, or cancel what no other may run. See "
        "manage.py taskqueue why {example}.",
    ),
    "too_few_workers": (
        QUEUES,
        "In the queue {subject} tasks wait for more workers than are there: {count}. The first is"
        " {example}, for {age}: of its {total} workers it still waits for {detail}.",
        "Start more workers that may take from the queue, each under a name of its own, or "
        "cancel it. See manage.py taskqueue why {example}.",
    ),
    "parked": (
        WORKERS,
        "Tasks are parked, for no worker that took them knows {subject}: {count}. The first is"
        " {example}, for {age}: it fails {fails}.",
        "Start workers whose code has the task, restart those whose code is old, or cancel what "
        "nobody is to run. See manage.py taskqueue why {example}.",
    ),
    "schedule_trouble": (
        SCHEDULES, "The schedule {subject} cannot be served: {detail}",
        "Mend what it says: manage.py taskqueue schedules show {subject}.",
    ),
    "schedule_paused_itself": (
        SCHEDULES, "The schedule {subject} paused itself after {count} failures in a row.",
        "Mend what its runs failed of, then manage.py taskqueue schedules resume {subject}.",
    ),
}  # fmt: skip


def finding_of(notice: Notice) -> Finding:
    """The finding that says what the notice says."""
    check, seen, remedy = SAYINGS[notice.code]
    left = get_settings().PARK_LIMIT.total_seconds() - (notice.seconds or 0.0)
    words = {
        "subject": notice.subject,
        "count": f"{notice.count or 0:,}{'+' if notice.is_capped else ''}",
        "total": f"{notice.total or 0:,}",
        "example": notice.example,
        "age": duration(notice.seconds or 0.0),
        "fails": f"in {duration(left)}" if left > 0 else "when it is tried next",
        "detail": notice.detail,
    }
    return Finding(
        check=check,
        severity=PROBLEM if notice.level == ERROR else WARNING,
        subject=notice.subject,
        seen=seen.format(**words),
        remedy=remedy.format(**words | {"subject": quote(notice.subject)}),
    )
