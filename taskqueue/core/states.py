"""The statuses of tasks and leases. `core.transitions` says which may follow which."""

from __future__ import annotations

from enum import StrEnum


class TaskStatus(StrEnum):
    """The status of a task; `succeeded`, `failed` and `cancelled` are final."""

    BLOCKED = "blocked"
    """Waits for other tasks of its workflow."""
    SCHEDULED = "scheduled"
    """Waits for its `run_after`."""
    READY = "ready"
    """May be claimed by any worker of its queue."""
    RUNNING = "running"
    """A worker holds a lease on it."""
    RETRYING = "retrying"
    """Failed or was lost, and waits for its next attempt."""
    SUCCEEDED = "succeeded"
    """Its body returned."""
    FAILED = "failed"
    """No attempt remains, or none would help."""
    CANCELLED = "cancelled"
    """Somebody stopped it, or it expired before it started."""


class LeaseStatus(StrEnum):
    """The status of one attempt; only a `running` lease may write."""

    RUNNING = "running"
    """A worker holds the task."""
    SUCCEEDED = "succeeded"
    """The body returned."""
    FAILED = "failed"
    """The body raised, ran out of time, or could not be called."""
    LOST = "lost"
    """The child died, the lease ran out, or the worker fenced itself."""
    STOPPED = "stopped"
    """Somebody asked it to stop, or the body raised `Cancel`."""
    RETURNED = "returned"
    """Handed back without a verdict: snoozed, parked, or shut down."""


WAITING = frozenset({TaskStatus.SCHEDULED, TaskStatus.RETRYING})
"""Statuses that become `ready` once `run_after` is reached."""

PENDING = frozenset({TaskStatus.BLOCKED, *WAITING, TaskStatus.READY})
"""Statuses of tasks that are neither running nor finished."""

FINISHED = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.CANCELLED})
"""Final statuses: only a manual retry leaves them."""
