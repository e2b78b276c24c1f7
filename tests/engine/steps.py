"""The engine's verbs with short names, for tests that play a worker by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Thread
from typing import Any

from django.db import connection as default_connection
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import Outcome, OutcomeKind, Recorded
from taskqueue.engine import ends, forecast
from taskqueue.engine.connections import open_worker_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.rows import Claimed
from taskqueue.engine.statement import change
from taskqueue.engine.tally import Tally
from taskqueue.models import Lease, Task
from taskqueue.results import TaskResult
from taskqueue.worker.duties import LOOKS

LEASE = timedelta(seconds=30)
HOUR = timedelta(hours=1)


class Undo(Exception):
    """Rolls a transaction back."""


def policy(**changes: Any) -> EndPolicy:
    """Return the settings with these changes."""
    settings = get_settings()
    values = {
        "keep_succeeded": settings.RETENTION["succeeded"],
        "keep_failed": settings.RETENTION["failed"],
        "keep_cancelled": settings.RETENTION["cancelled"],
        "park_limit": settings.PARK_LIMIT,
    }
    return EndPolicy(**{**values, **changes})


def claim(
    size: int = 100,
    *,
    queue: str = "default",
    quotas: Sequence[tuple[str, int]] | None = None,
    worker: str = "w1",
    unknown: Sequence[str] = (),
    lease_duration: timedelta = LEASE,
    connection: BaseDatabaseWrapper | None = None,
) -> list[Claimed]:
    """Claim as a worker does."""
    connection = connection or connections["default"]
    return dialect_for(connection).claim(
        connection,
        worker=worker,
        quotas=quotas or [(queue, size)],
        unknown=unknown,
        lease_duration=lease_duration,
    )


def claim_one(**options: Any) -> Claimed:
    """Claim, where one task is to be had."""
    (claimed,) = claim(**options)
    return claimed


def outcome(claimed: Claimed, kind: OutcomeKind, **fields: Any) -> Outcome:
    """Return the outcome of that attempt: a body that ran for a second and ended now."""
    started = None if kind is OutcomeKind.UNSTARTED else 1.0
    return Outcome(claimed.lease_id, kind, **{"started": started, "ended": 0.0, **fields})


def end(
    claimed: Claimed, kind: OutcomeKind, *, policy: EndPolicy | None = None, **fields: Any
) -> str | None:
    """Record an outcome; the task's new status, or None where the fence refused it."""
    recorded = record(
        default_connection,
        [outcome(claimed, kind, **fields)],
        policy=policy or EndPolicy.of(get_settings()),
    )
    if claimed.lease_id not in recorded:
        return None
    task_status, lease_status, _ = recorded[claimed.lease_id]
    lease = Lease.objects.filter(id=claimed.lease_id).first()
    assert lease_status == (lease and lease.status), "It says what it wrote."
    return task_status


def task_statuses(recorded: Mapping[int, Recorded]) -> dict[int, str]:
    """The tasks' statuses, by lease."""
    return {lease_id: each.task_status for lease_id, each in recorded.items()}


def promote(limit: int = 100) -> forecast.Forecast:
    """Promote as the first worker does."""
    return forecast.promote(default_connection, LOOKS, worker_id=0, limit=limit)


def end_overdue(limit: int = 100) -> int:
    """End what is past its deadline or expired, with the settings' retention."""
    return len(ends.end_overdue(default_connection, limit=limit, policy=policy(), tally=Tally()))


def prune(limit: int = 100) -> int:
    """Prune one batch."""
    return dialect_for(default_connection).prune(default_connection, limit=limit)


def task_of(handle: TaskResult[Any] | Claimed) -> Task:
    """The row as it stands."""
    return Task.objects.get(id=handle.task_id if isinstance(handle, Claimed) else handle.id)


def lease_of(claimed: Claimed) -> Lease:
    """The row as it stands."""
    return Lease.objects.get(id=claimed.lease_id)


def past(duration: timedelta = HOUR) -> datetime:
    """A moment that is over."""
    return timezone.now() - duration


def future(duration: timedelta = HOUR) -> datetime:
    """A moment to come."""
    return timezone.now() + duration


def make_due(result: TaskResult[Any]) -> None:
    """Let the time come that a task waits for."""
    Task.objects.filter(id=result.id).update(run_after=past())


def run_out(claimed: Claimed) -> None:
    """Let a lease run out."""
    Lease.objects.filter(id=claimed.lease_id).update(expires_at=past())


@contextmanager
def another_connection() -> Iterator[BaseDatabaseWrapper]:
    """A worker's own connection, beside the test's."""
    # A worker tries again where others keep the write lock of SQLite for long; a test does not.
    connection = open_worker_connection(silence=30, busy_timeout=15)
    if connection.vendor == "postgresql":
        # A statement that waits for the test's own locks is to fail, not to wait for ever.
        change(connection, "SET lock_timeout = '10s'")
    try:
        yield connection
    finally:
        connection.close()


def run_at_once(calls: Iterable[Any], timeout: float = 60) -> None:
    """Run the calls in threads of their own, each with its own connections; raise their errors."""
    errors: list[BaseException] = []

    def run(call: Any) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout)
        assert not thread.is_alive(), "A thread hangs."
    if errors:
        raise errors[0]
