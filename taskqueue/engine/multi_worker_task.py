"""A locked task of several workers, and how the end of each attempt changes it.

Each of `workers` distinct workers must succeed. `open_slots`, `running_leases` and `successes` are
changed arithmetically under the task's lock, never counted from the leases. A delay after an
attempt applies only to the worker that ran it; other workers may take its place at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.outcomes import EFFECTS, Outcome, OutcomeKind
from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.engine.dialect import as_uuid, execute, select
from taskqueue.engine.notify import STOP, wake
from taskqueue.engine.retention import EndPolicy, Retention
from taskqueue.engine.rows import Ended
from taskqueue.engine.sessions import is_postgresql
from taskqueue.engine.statement import Statement, fetch
from taskqueue.models import Lease, Task

# How long a worker whose attempt did not succeed leaves its place to others.
OTHERS_FIRST = timedelta(seconds=3)
NEVER = datetime(9999, 1, 1, tzinfo=UTC)

# The columns that the end of an attempt may change.
WRITTEN_TASK = (
    "attempt", "parked_at", "failures", "crashes", "workers", "worker_names", "open_slots",
    "running_leases", "successes", "status", "started_at", "finished_at", "prune_after",
    "error_class", "error_message", "return_value", "holds_unique_key",
)  # fmt: skip
WRITTEN_LEASE = (
    "status", "started_at", "finished_at", "error_class", "error_message", "traceback",
    "return_value", "retry_at", "progress",
)  # fmt: skip
# Locks: leases by id, then their tasks by id.
LOCK_LEASES = Statement(
    postgresql="""
        SELECT lease.id, lease.task_id::text
        FROM (
            SELECT * FROM unnest(%(leases)s::bigint[]) AS held (lease_id) ORDER BY lease_id
        ) AS held
        CROSS JOIN LATERAL (
            SELECT id, task_id
            FROM taskqueue_lease
            WHERE id = held.lease_id AND finished_at IS NULL AND is_shared
            LIMIT 1
            FOR UPDATE
        ) AS lease
    """,
    sqlite="""
        SELECT id, task_id
        FROM taskqueue_lease
        WHERE id IN (SELECT value FROM json_each(%(leases)s)) AND status = 'running' AND is_shared
    """,
)
LOCK_TASKS = """
SELECT task.id
FROM (SELECT * FROM unnest(%s::uuid[]) AS held (task_id) ORDER BY task_id) AS held
CROSS JOIN LATERAL (
    SELECT id FROM taskqueue_task WHERE id = held.task_id LIMIT 1 FOR UPDATE
) AS task
"""
WITHDRAW = Statement.of("DELETE FROM taskqueue_lease WHERE id = %(lease)s")


def lock_shared(connection: BaseDatabaseWrapper, lease_ids: Sequence[int]) -> dict[int, str]:
    """Lock those leases that are running for a task of several workers, then their tasks.

    Return the ids of the tasks, by lease.
    """
    rows = select(connection, LOCK_LEASES, leases=list(lease_ids))
    held = {lease_id: str(as_uuid(task_id)) for lease_id, task_id in rows}
    if held:
        lock_tasks(connection, sorted(set(held.values())))
    return held


def lock_tasks(connection: BaseDatabaseWrapper, task_ids: Sequence[str]) -> None:
    """Lock tasks by id; on SQLite the write lock suffices."""
    if is_postgresql(connection):
        fetch(connection, LOCK_TASKS, (list(task_ids),))


class MultiWorkerTask:
    """Change the task, then call `settle` or `cancel_unless_running`, which write it."""

    def __init__(
        self, connection: BaseDatabaseWrapper, task: Task, *, now: datetime, policy: EndPolicy
    ) -> None:
        self._connection = connection
        self.task = task
        self._now = now
        self._policy = policy

    @property
    def leases(self) -> QuerySet[Lease]:
        """All attempts of the task."""
        return Lease.objects.using(self._connection.alias).filter(task_id=self.task.id)

    def settle(self) -> list[Ended]:
        """Write the task, and end it if nobody runs it and no worker may claim it.

        Return the end, if there is one, for the caller to announce.
        """
        if self.task.running_leases == 0 and self.task.open_slots == 0:
            self._finish()
        elif self.task.attempt == 0 and self.task.status == TaskStatus.RUNNING:
            self.task.status = TaskStatus.READY  # No worker has started it after all.
        return self._written()

    def cancel_unless_running(self, reason: str) -> list[Ended]:
        """Like `settle`, but a task that nobody runs is cancelled."""
        if self.task.running_leases == 0:
            self._end(TaskStatus.CANCELLED, "", reason)
        return self._written()

    def record(self, outcome: Outcome, lease: Lease) -> str | None:
        """Write the end of one attempt.

        Return its lease's status, or None if the lease is withdrawn.
        """
        task = self.task
        kind = outcome.kind
        if kind == OutcomeKind.SUCCEEDED and lease.stop_seen_at is not None:
            kind = OutcomeKind.STOPPED
        stopping = lease.stop_requested_at is not None and kind != OutcomeKind.SUCCEEDED
        effect = EFFECTS[kind]
        lease_status = effect.lease_status_of(stopping=stopping)
        task.running_leases -= 1
        if outcome.started is not None:
            lease.started_at = lease.started_at or self._ago(outcome.started)
        elif lease.started_at is not None:
            # A body that never began may be noted as running, because its order had been sent.
            task.started_at = None if task.started_at == lease.started_at else task.started_at
            lease.started_at = None
        task.started_at = task.started_at or lease.started_at
        lease.status = lease_status or LeaseStatus.RETURNED
        lease.finished_at = self._ago(outcome.ended)
        lease.error_class, lease.traceback = outcome.error_class, outcome.traceback
        lease.error_message = outcome.error_message
        if kind == OutcomeKind.SUCCEEDED:
            task.successes += 1
            lease.progress = None if lease.progress is None else 100.0
            text = outcome.return_value
            lease.return_value = None if text is None else json.loads(text)
        elif stopping or effect.task_status is TaskStatus.CANCELLED:
            lease.error_message = outcome.error_message or lease.stop_reason
            self._close(lease)
        else:
            self._reopen_or_exhaust(lease, outcome)
        if lease_status is None and task.attempt == lease.attempt:
            task.attempt -= 1
            execute(self._connection, WITHDRAW, lease=lease.id)
            return None
        _write(self.leases.filter(id=lease.id), lease, WRITTEN_LEASE)
        return lease.status

    def _ago(self, seconds: float) -> datetime:
        return self._now - timedelta(seconds=seconds)

    def _close(self, asked_by: Lease) -> None:
        """Let no further worker claim the task, and ask its running attempts to stop."""
        self.task.open_slots = 0
        others = self.leases.filter(status=LeaseStatus.RUNNING, stop_requested_at=None)
        worker = asked_by.worker_id
        if others.exclude(id=asked_by.id).update(
            stop_requested_at=self._now,
            stop_requested_by=asked_by.stop_requested_by or worker,
            stop_reason=asked_by.stop_reason or f"The task was cancelled on {worker}.",
        ):
            wake(self._connection, STOP)

    def _reopen_or_exhaust(self, lease: Lease, outcome: Outcome) -> None:
        task, effect = self.task, EFFECTS[outcome.kind]
        # Workers that have neither succeeded nor are running it, including this one.
        missing = task.workers - task.successes - task.running_leases
        was_closed = not task.broadcast and missing > task.open_slots + 1
        task.failures += effect.counts_as == "failure"
        task.crashes += effect.counts_as == "crash"
        is_exhausted = self._is_exhausted(lease, outcome)
        if effect.limited_by == "park_limit":
            task.parked_at = task.parked_at or self._now
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
            lease.retry_at = self._now + max(delay, OTHERS_FIRST)
        if not was_closed:
            task.open_slots += 1

    def _is_exhausted(self, lease: Lease, outcome: Outcome) -> bool:
        """Return whether nothing is left to try, for the task or for this worker's part of it."""
        task, limited_by = self.task, EFFECTS[outcome.kind].limited_by
        if not limited_by:
            return False
        if limited_by == "park_limit":
            return (task.parked_at or self._now) <= self._now - self._policy.park_limit
        if limited_by == "max_attempts" and not outcome.retryable:
            return True
        counted = task.failures if limited_by == "max_attempts" else task.crashes
        if task.broadcast:
            earlier = self._since_retry().filter(
                worker_id=lease.worker_id, status=lease.status, retry_at__isnull=False
            )
            counted = earlier.count() + 1
        most: int = getattr(task, limited_by)
        return counted >= most

    def _since_retry(self) -> QuerySet[Lease]:
        """Return the attempts since the last manual retry."""
        return self.leases.filter(attempt__gt=self.task.attempts_before_retry).order_by("attempt")

    def _finish(self) -> None:
        task, attempts = self.task, self._since_retry()
        if 0 < task.workers <= task.successes:
            done = self.leases.filter(status=LeaseStatus.SUCCEEDED, is_shared=True)
            values = done.order_by("finished_at", "attempt").values_list("return_value", flat=True)
            task.return_value = list(values)
            self._end(TaskStatus.SUCCEEDED, "", "")
        elif stopped := (
            attempts.filter(stop_requested_at__isnull=False).first()
            or attempts.filter(status=LeaseStatus.STOPPED).first()
        ):
            self._end(TaskStatus.CANCELLED, "", stopped.stop_reason or stopped.error_message)
        else:
            last = attempts.exclude(error_class="").last()
            if last is not None and not task.error_class:
                task.error_class, task.error_message = last.error_class, last.error_message
            self._end(TaskStatus.FAILED, task.error_class, task.error_message)

    def _end(self, status: TaskStatus, error_class: str, error_message: str) -> None:
        task, retention = self.task, Retention.of(self.task)
        task.status = status.value
        task.error_class, task.error_message = error_class, error_message
        task.finished_at = self._now
        task.prune_after = retention.prune_after(self._now, self._policy.kept_for(status))
        task.holds_unique_key = retention.keeps_key

    def _written(self) -> list[Ended]:
        task = self.task
        rows = Task.objects.using(self._connection.alias).filter(id=task.id)
        _write(rows, task, WRITTEN_TASK)
        if task.finished_at is None:
            return []
        status = str(task.status)
        return [Ended(str(task.id), task.queue_name, task.name, status, task.step_id)]


def _write(rows: QuerySet[Any], row: Task | Lease, columns: Iterable[str]) -> None:
    """Without `save()`: signal receivers of the project must not run in a worker's parent."""
    rows.update(**{name: getattr(row, name) for name in columns})
