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

from taskqueue.core.outcomes import EFFECTS, Outcome, OutcomeKind, Recorded
from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.engine.connections import installed
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.limits import Limits
from taskqueue.engine.multi_worker.settling import ended, leases_of, settle
from taskqueue.engine.notify import wake
from taskqueue.engine.rows import Ended
from taskqueue.models import Lease, Task

OTHERS_FIRST = timedelta(seconds=3)
"""How long a worker whose attempt did not succeed lets others take its place."""
NEVER = datetime(9999, 1, 1, tzinfo=UTC)

_WRITTEN = (
    "status", "started_at", "finished_at", "error_class", "error_message", "traceback",
    "return_value", "retry_at", "progress",
)  # fmt: skip
"""What the end of an attempt changes of its lease."""


SharedRecord = tuple[dict[int, Recorded], list[Ended]]
"""What was recorded, by lease, and the tasks that ended, which the caller announces."""


def record_shared(
    connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome], *, limits: Limits
) -> SharedRecord:
    """Record outcomes whose lease still runs for a task of several workers.

    Locks the leases by id, then their tasks by id.
    """
    with installed(connection):
        wording = dialect_for(connection)
        held = wording.lock_shared(connection, _to_lock(connection, outcomes))
        if not held:
            return {}, []
        now = wording.now(connection)
        recorded: dict[int, Recorded] = {}
        all_ended: list[Ended] = []
        for outcome in sorted(outcomes, key=lambda outcome: outcome.lease_id):
            if outcome.lease_id in held:
                task, lease_status = _record(connection, outcome, now, limits)
                recorded[outcome.lease_id] = Recorded(str(task.status), lease_status)
                all_ended += ended(task)
        return recorded, all_ended


def _to_lock(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> list[int]:
    """The leases that these outcomes may change: a stop is told to the siblings too.

    Locked only later, behind their task, they would meet their own worker, which locks them first.
    """
    leases = Lease.objects.using(connection.alias)
    stopped = [
        each.lease_id for each in outcomes if EFFECTS[each.kind].task_status is TaskStatus.CANCELLED
    ]
    siblings: set[int] = set()
    if stopped:
        tasks = leases.filter(id__in=stopped).values("task_id")
        running = leases.filter(task_id__in=tasks, status=LeaseStatus.RUNNING, is_shared=True)
        siblings = set(running.values_list("id", flat=True))
    return sorted({outcome.lease_id for outcome in outcomes} | siblings)


def _record(
    connection: BaseDatabaseWrapper, outcome: Outcome, now: datetime, limits: Limits
) -> tuple[Task, str | None]:
    lease = Lease.objects.using(connection.alias).get(id=outcome.lease_id)
    task = Task.objects.using(connection.alias).get(id=lease.task_id)
    kind = OutcomeKind(outcome.kind)
    if kind is OutcomeKind.SUCCEEDED and lease.stop_seen_at is not None:
        kind = OutcomeKind.STOPPED
    stopping = lease.stop_requested_at is not None and kind is not OutcomeKind.SUCCEEDED
    effect = EFFECTS[kind]
    lease_status = effect.lease_status_of(stopping=stopping)
    task.running_leases -= 1
    if outcome.started is not None:
        lease.started_at = lease.started_at or now - timedelta(seconds=outcome.started)
    task.started_at = task.started_at or lease.started_at
    lease.status = lease_status or LeaseStatus.RETURNED
    lease.finished_at = now - timedelta(seconds=outcome.ended)
    lease.error_class, lease.traceback = outcome.error_class, outcome.traceback
    lease.error_message = outcome.error_message
    if kind is OutcomeKind.SUCCEEDED:
        task.successes += 1
        lease.progress = None if lease.progress is None else 100.0
        text = outcome.return_value
        lease.return_value = None if text is None else json.loads(text)
    elif stopping or effect.task_status is TaskStatus.CANCELLED:
        lease.error_message = outcome.error_message or lease.stop_reason
        _close(connection, task, now, asked_by=lease)
    else:
        _reopen_or_exhaust(connection, task, lease, outcome, now, limits)
    if lease_status is None and task.attempt == lease.attempt:
        task.attempt -= 1
        dialect_for(connection).withdraw(connection, lease.id)
    else:
        lease_status = lease.status
        _write(connection, lease)
    settle(connection, task, now=now, limits=limits)
    return task, lease_status


def _write(connection: BaseDatabaseWrapper, lease: Lease) -> None:
    """Without `save()`: the project's signal receivers have no business in a worker's parent."""
    values: dict[str, Any] = {name: getattr(lease, name) for name in _WRITTEN}
    Lease.objects.using(connection.alias).filter(id=lease.id).update(**values)


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
    effect = EFFECTS[outcome.kind]
    was_closed = not task.broadcast and _missing(task) > task.open_slots + 1
    task.failures += effect.counts_as == "failure"
    task.crashes += effect.counts_as == "crash"
    is_exhausted = _is_exhausted(connection, task, lease, outcome, now - limits.park_limit)
    if effect.limited_by == "park_limit":
        task.parked_at = task.parked_at or now
    elif effect.lease_status is not None:
        task.parked_at = None
    if is_exhausted:
        lease.retry_at = NEVER
        if not task.error_class:
            task.error_class, task.error_message = lease.error_class, lease.error_message
        if not task.broadcast:
            task.open_slots = 0
        return
    if effect.task_status is not TaskStatus.READY:
        is_crash = effect.counts_as == "crash"
        delay = task.crash_delay if is_crash else timedelta(seconds=outcome.delay)
        lease.retry_at = now + max(delay, OTHERS_FIRST)
    if not was_closed:
        task.open_slots += 1


def _missing(task: Task) -> int:
    """Return how many workers have neither succeeded nor run it now."""
    return task.workers - task.successes - task.running_leases


def _is_exhausted(
    connection: BaseDatabaseWrapper,
    task: Task,
    lease: Lease,
    outcome: Outcome,
    parked_before: datetime,
) -> bool:
    """Return whether nothing is left to try: for the task, or for this worker's part of it."""
    limited_by = EFFECTS[outcome.kind].limited_by
    if not limited_by:
        return False
    if limited_by == "park_limit":
        return task.parked_at is not None and task.parked_at < parked_before
    if limited_by == "max_attempts" and not outcome.retryable:
        return True
    most: int = getattr(task, limited_by)
    if not task.broadcast:
        return (task.failures if limited_by == "max_attempts" else task.crashes) >= most
    earlier = leases_of(connection, task).filter(
        worker_id=lease.worker_id,
        status=lease.status,
        attempt__gt=task.attempts_before_retry,
        retry_at__isnull=False,
    )
    return earlier.count() + 1 >= most
