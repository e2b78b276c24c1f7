"""Notices as findings of the doctor: each with a remedy."""

from __future__ import annotations

from shlex import quote

from taskqueue.conf import get_settings
from taskqueue.monitoring.doctor.finding import (
    FAILURES,
    PROBLEM,
    QUEUES,
    SCHEDULES,
    WARNING,
    WORKERS,
    Finding,
)
from taskqueue.monitoring.doctor.words import duration
from taskqueue.monitoring.notice import ERROR, Notice

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
