"""Tasks of several workers: what the end of one worker's attempt makes of the whole.

Each of `workers` distinct workers must succeed. `open_slots`, `running_leases` and `successes` are
changed arithmetically under the task's lock, never counted from the leases. A delay after an
attempt holds for the worker whose attempt it was; its place is open to others at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.core.states import LeaseStatus
from taskqueue.engine.connections import installed
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.limits import Limits
from taskqueue.engine.multi_worker.settling import leases_of, settle
from taskqueue.engine.notify import wake
from taskqueue.models import Lease, Task

OTHERS_FIRST = timedelta(seconds=3)
"""How long a worker whose attempt did not succeed lets others take its place."""
NEVER = datetime(9999, 1, 1, tzinfo=UTC)

_WRITTEN = (
    "status", "started_at", "finished_at", "error_class", "error_message", "traceback",
    "return_value", "retry_at", "progress",
)  # fmt: skip
"""What the end of an attempt changes of its lease."""
_LEASE_STATUS = {
    OutcomeKind.SUCCEEDED: LeaseStatus.SUCCEEDED,
    OutcomeKind.FAILED: LeaseStatus.FAILED,
    OutcomeKind.RETRY_LATER: LeaseStatus.FAILED,
    OutcomeKind.SNOOZED: LeaseStatus.RETURNED,
    OutcomeKind.CANCELLED: LeaseStatus.STOPPED,
    OutcomeKind.STOPPED: LeaseStatus.STOPPED,
    OutcomeKind.LOST: LeaseStatus.LOST,
    OutcomeKind.FENCED: LeaseStatus.LOST,
    OutcomeKind.RETURNED: LeaseStatus.RETURNED,
    OutcomeKind.UNSTARTED: LeaseStatus.RETURNED,
    OutcomeKind.PARKED: LeaseStatus.RETURNED,
}


def record_shared(
    connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome], *, limits: Limits
) -> dict[int, str]:
    """Record outcomes whose lease still runs for a task of several workers.

    The tasks' statuses then, by lease. Locks the leases by id, then their tasks by id.
    """
    with installed(connection):
        wording = dialect_for(connection)
        held = wording.lock_shared(connection, _to_lock(connection, outcomes))
        if not held:
            return {}
        now = wording.now(connection)
        recorded = {}
        for outcome in sorted(outcomes, key=lambda outcome: outcome.lease_id):
            if outcome.lease_id in held:
                recorded[outcome.lease_id] = _record(connection, outcome, now, limits)
        return recorded


def _to_lock(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> list[int]:
    """The leases that these outcomes may change: a stop is told to the siblings too.

    Locked only later, behind their task, they would meet their own worker, which locks them first.
    """
    leases = Lease.objects.using(connection.alias)
    stopped = [
        each.lease_id
        for each in outcomes
        if each.kind in (OutcomeKind.CANCELLED, OutcomeKind.STOPPED)
    ]
    siblings: set[int] = set()
    if stopped:
        tasks = leases.filter(id__in=stopped).values("task_id")
        running = leases.filter(task_id__in=tasks, status=LeaseStatus.RUNNING, is_shared=True)
        siblings = set(running.values_list("id", flat=True))
    return sorted({outcome.lease_id for outcome in outcomes} | siblings)


def has_succeeded(connection: BaseDatabaseWrapper, lease_id: int) -> bool:
    """Whether one worker's attempt has succeeded, whatever became of the task."""
    with installed(connection):
        leases = Lease.objects.using(connection.alias).filter(id=lease_id)
        return leases.filter(status=LeaseStatus.SUCCEEDED).exists()


def _record(
    connection: BaseDatabaseWrapper, outcome: Outcome, now: datetime, limits: Limits
) -> str:
    lease = Lease.objects.using(connection.alias).get(id=outcome.lease_id)
    task = Task.objects.using(connection.alias).get(id=lease.task_id)
    kind = _kind_of(outcome, lease)
    task.running_leases -= 1
    if outcome.started is not None:
        lease.started_at = lease.started_at or now - timedelta(seconds=outcome.started)
    task.started_at = task.started_at or lease.started_at
    lease.status = _LEASE_STATUS[kind]
    lease.finished_at = now - timedelta(seconds=outcome.ended)
    lease.error_class, lease.traceback = outcome.error_class, outcome.traceback
    lease.error_message = outcome.error_message
    if kind is OutcomeKind.SUCCEEDED:
        task.successes += 1
        lease.progress = None if lease.progress is None else 100.0
        text = outcome.return_value
        lease.return_value = None if text is None else json.loads(text)
    elif (
        kind in (OutcomeKind.CANCELLED, OutcomeKind.STOPPED) or lease.stop_requested_at is not None
    ):
        lease.error_message = outcome.error_message or lease.stop_reason
        _close(connection, task, now, asked_by=lease)
    else:
        _reopen_or_exhaust(connection, task, lease, outcome, now, limits)
    if (
        kind is OutcomeKind.UNSTARTED
        and task.attempt == lease.attempt
        and not lease.stop_requested_at
    ):
        task.attempt -= 1  # It leaves no trace.
        dialect_for(connection).withdraw(connection, lease.id)
    else:
        _write(connection, lease)
    settle(connection, task, now=now, limits=limits)
    return str(task.status)


def _write(connection: BaseDatabaseWrapper, lease: Lease) -> None:
    """Without `save()`: the project's signal receivers have no business in a worker's parent."""
    values: dict[str, Any] = {name: getattr(lease, name) for name in _WRITTEN}
    Lease.objects.using(connection.alias).filter(id=lease.id).update(**values)


def _kind_of(outcome: Outcome, lease: Lease) -> OutcomeKind:
    kind = OutcomeKind(outcome.kind)
    if kind is OutcomeKind.SUCCEEDED:
        return OutcomeKind.STOPPED if lease.stop_seen_at is not None else kind
    if lease.stop_requested_at is not None and kind not in (OutcomeKind.LOST, OutcomeKind.FENCED):
        return OutcomeKind.STOPPED
    return kind


def _close(connection: BaseDatabaseWrapper, task: Task, now: datetime, *, asked_by: Lease) -> None:
    """No worker takes it any more, and those that run it are asked to stop."""
    task.open_slots = 0
    others = leases_of(connection, task).filter(status=LeaseStatus.RUNNING, stop_requested_at=None)
    asked = others.exclude(id=asked_by.id).update(
        stop_requested_at=now,
        stop_requested_by=asked_by.stop_requested_by or asked_by.worker_id,
        stop_reason=asked_by.stop_reason or f"The task was cancelled on {asked_by.worker_id}.",
    )
    if asked:
        wake(connection, "stop")


def _reopen_or_exhaust(
    connection: BaseDatabaseWrapper,
    task: Task,
    lease: Lease,
    outcome: Outcome,
    now: datetime,
    limits: Limits,
) -> None:
    kind = OutcomeKind(outcome.kind)
    was_closed = not task.broadcast and _missing(task) > task.open_slots + 1
    delay = timedelta(seconds=outcome.delay)
    if kind in (OutcomeKind.FAILED, OutcomeKind.RETRY_LATER):
        task.failures += 1
    if kind is OutcomeKind.LOST:
        task.crashes += 1
        delay = task.crash_delay
    is_exhausted = _is_exhausted(connection, task, lease, outcome, now, limits)
    if kind is not OutcomeKind.UNSTARTED:
        task.parked_at = (task.parked_at or now) if kind is OutcomeKind.PARKED else None
    if is_exhausted:
        lease.retry_at = NEVER
        if not task.error_class:
            task.error_class, task.error_message = lease.error_class, lease.error_message
        if not task.broadcast:
            task.open_slots = 0
        return
    if kind not in (OutcomeKind.FENCED, OutcomeKind.RETURNED, OutcomeKind.UNSTARTED):
        lease.retry_at = now + max(delay, OTHERS_FIRST)
    if not was_closed:
        task.open_slots += 1


def _missing(task: Task) -> int:
    """How many workers have neither succeeded nor run it now."""
    return task.workers - task.successes - task.running_leases


def _is_exhausted(
    connection: BaseDatabaseWrapper,
    task: Task,
    lease: Lease,
    outcome: Outcome,
    now: datetime,
    limits: Limits,
) -> bool:
    """Whether this end leaves nothing to try: for the task, or for this worker's part of it."""
    kind = OutcomeKind(outcome.kind)
    if kind is OutcomeKind.PARKED:
        return task.parked_at is not None and task.parked_at < now - limits.park_limit
    if kind is OutcomeKind.FAILED and not outcome.retryable:
        return True
    if kind not in (OutcomeKind.FAILED, OutcomeKind.LOST):
        return False
    ended = lease.status
    most = task.max_attempts if kind is OutcomeKind.FAILED else task.max_crashes
    if not task.broadcast:
        return (task.failures if kind is OutcomeKind.FAILED else task.crashes) >= most
    earlier = leases_of(connection, task).filter(
        worker_id=lease.worker_id,
        status=ended,
        attempt__gt=task.attempts_before_retry,
        retry_at__isnull=False,
    )
    return earlier.count() + 1 >= most
